// How fast plugins code, through Ceph's interface and in one process: what a daemon would see.
//
//   gestalt_ec_benchmark DIRECTORY --plugin NAME --parameter NAME=VALUE... [--workload encode|decode] [--size BYTES]
//       [--iterations N] [--erasures N]         one line, as Ceph's own benchmark prints it: seconds and KiB
//   gestalt_ec_benchmark DIRECTORY --sweep JSON [--quick] [--place processor|auto|card]
//       shapes and block sizes of all plugins, which take turns, as JSON
//
// A *round* gives every side the same time, one after the other, each round beginning with another; the median of the rounds counts. Time
// is that of the thread on the processor, unless a card takes part.
// `encode` is the interface's `encode` of an object in one piece: buffers for parities are allocated, as in a daemon. `compute` is
// `encode_chunks` on buffers that are there; the difference is what buffers, pieces and copies cost. Decoding has lost the first data
// chunks, as many as there are parities, but no more than four.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <sstream>

#include "registry.h"

namespace {

using namespace tools;
// Seconds of a clock.
double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What rates are taken by. The processor's time of this thread: others on the machine then count less. A card's time is none of that.
clockid_t rate_clock = CLOCK_THREAD_CPUTIME_ID;

[[noreturn]] void fail(const std::string &what) {
  std::cerr << what << std::endl;
  std::exit(1);
}

struct Side {
  std::string name;
  std::string plugin;
  Profile profile;
};

// One code with an object of one size.
class Work {
 public:
  Work(const Code &code, unsigned size) : code_(code), all_(places(code->get_chunk_count())), object_(random_bytes(size, 7)) {
    if (code->encode(all_, object_, &chunks_)) fail("an object is not encoded");
    const unsigned losses = std::min(4u, code->get_coding_chunk_count());
    rest_ = chunks_;
    for (unsigned place = 0; place < losses && place < code->get_data_chunk_count(); ++place) {
      lost_.insert(static_cast<int>(place));
      rest_.erase(static_cast<int>(place));
    }
  }

  void encode() const {
    Chunks encoded;
    if (code_->encode(all_, object_, &encoded)) fail("an object is not encoded");
  }

  void compute() {
    if (code_->encode_chunks(all_, &chunks_)) fail("chunks are not encoded");
  }

  void decode() const {
    Chunks decoded;
    const int len = static_cast<int>(rest_.begin()->second.length());
    if (code_->decode(lost_, rest_, &decoded, len)) fail("an object is not decoded");
  }

  // Whether what is decoded is what was lost.
  bool decodes() const {
    Chunks decoded;
    const int len = static_cast<int>(rest_.begin()->second.length());
    if (code_->decode(lost_, rest_, &decoded, len)) return false;
    return std::all_of(lost_.begin(), lost_.end(),
                       [&](int place) { return decoded[place].contents_equal(chunks_.at(place)); });
  }

 private:
  Code code_;
  std::set<int> all_, lost_;
  ceph::bufferlist object_;
  Chunks chunks_, rest_;
};

struct Options {
  std::string directory, plugin, workload = "encode", sweep, place = "processor";
  Profile profile;
  unsigned size = 1 << 20, iterations = 1, erasures = 1;
  bool quick = false;
};

// Calls per second of each kind of work, for one side.
struct Rates {
  std::vector<double> encode, compute, decode;
};

double rate(double turn, const std::function<void()> &work) {
  const double start = seconds(rate_clock);
  unsigned calls = 0;
  double took;
  do {
    work();
    ++calls;
    took = seconds(rate_clock) - start;
  } while (took < turn);
  return calls / took;
}

double median(std::vector<double> rates) {
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

std::vector<Side> sides(unsigned k, unsigned m, const std::string &place) {
  const Profile shape{{"k", std::to_string(k)}, {"m", std::to_string(m)}};
  auto side = [&](const char *name, const char *plugin, Profile profile) {
    profile.insert(shape.begin(), shape.end());
    if (std::strcmp(plugin, "gestalt") == 0) profile["place"] = place;
    return Side{name, plugin, profile};
  };
  std::vector<Side> sides{side("gestalt rs", "gestalt", {{"technique", "rs"}})};
  unsigned points = 1;
  while (points < m) points *= 2;
  if (k + points <= 256) sides.push_back(side("gestalt lch", "gestalt", {{"technique", "lch"}}));
  if (k <= 32 && m <= 32) sides.push_back(side("isa cauchy", "isa", {{"technique", "cauchy"}}));
  if (k <= 32 && (m < 4 || (m == 4 && k <= 21))) {
    sides.push_back(side("isa vandermonde", "isa", {{"technique", "reed_sol_van"}}));
  }
  if (k + m <= 256) sides.push_back(side("jerasure", "jerasure", {{"technique", "reed_sol_van"}, {"w", "8"}}));
  return sides;
}

// The figures of one shape and one size, a JSON object for each side.
void measure(const Options &options, const char *set, unsigned k, unsigned m, unsigned size, std::ostream &out, bool *first) {
  const double turn = options.quick ? 0.002 : 0.008;
  const unsigned rounds = options.quick ? 3 : 9;
  std::vector<Side> all = sides(k, m, options.place);
  std::vector<Work> works;
  for (const Side &side : all) {
    works.emplace_back(make(side.plugin, options.directory, side.profile), size);
    if (!works.back().decodes()) fail(side.name + " does not decode what it encodes");
  }
  std::vector<Rates> rates(all.size());
  for (unsigned round = 0; round < rounds; ++round) {
    for (size_t turn_of = 0; turn_of < all.size(); ++turn_of) {
      const size_t i = (turn_of + round) % all.size();
      Work &work = works[i];
      rates[i].encode.push_back(rate(turn, [&] { work.encode(); }));
      rates[i].compute.push_back(rate(turn, [&] { work.compute(); }));
      rates[i].decode.push_back(rate(turn, [&] { work.decode(); }));
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double encode = median(rates[i].encode), compute = median(rates[i].compute), decode = median(rates[i].decode);
    const double copying = std::max(0.0, 1 - encode / compute);
    char line[400];
    std::snprintf(line, sizeof line,
                  "%s{\"set\":\"%s\",\"k\":%u,\"m\":%u,\"size\":%u,\"side\":\"%s\",\"encode_gb_s\":%.4f,"
                  "\"compute_gb_s\":%.4f,\"copy_share\":%.3f,\"decode_gb_s\":%.4f}",
                  *first ? "" : ",\n", set, k, m, size, all[i].name.c_str(), encode * size / 1e9, compute * size / 1e9,
                  copying, decode * size / 1e9);
    out << line;
    *first = false;
  }
  std::fprintf(stderr, "%s %u+%u, %u bytes\n", set, k, m, size);
}

void sweep(const Options &options) {
  std::ofstream out(options.sweep);
  out << "{\"ceph\":\"" << GESTALT_CEPH_VERSION << "\",\"place\":\"" << options.place << "\",\"figures\":[\n";
  bool first = true;
  auto shapes = [&](const char *set, const std::vector<std::pair<unsigned, unsigned>> &list, unsigned size) {
    for (auto [k, m] : list) measure(options, set, k, m, size, out, &first);
  };
  // As paper 000 has them: the share of data is 33 % or 75 %, and parities go from 2 to 128; then k to 128 with few parities.
  const unsigned object = 1 << 20;
  if (options.quick) {
    shapes("efficiency 75 %", {{12, 4}}, object);
  } else {
    shapes("efficiency 33 %", {{2, 4}, {4, 8}, {8, 16}, {16, 32}, {32, 64}, {64, 128}}, object);
    shapes("efficiency 75 %", {{6, 2}, {12, 4}, {24, 8}, {48, 16}, {96, 32}, {128, 43}}, object);
    shapes("four parities", {{2, 4}, {4, 4}, {8, 4}, {16, 4}, {32, 4}, {64, 4}, {128, 4}}, object);
  }
  const std::vector<unsigned> blocks =
      options.quick ? std::vector<unsigned>{4096} : std::vector<unsigned>{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
  for (auto [k, m] : {std::pair{4u, 2u}, {10u, 4u}}) {
    for (unsigned block : blocks) shapes("block size", {{k, m}}, k * block);
  }
  out << "\n]}\n";
}

void one(const Options &options) {
  const Code code = make(options.plugin, options.directory, options.profile);
  const std::set<int> all = places(code->get_chunk_count());
  const ceph::bufferlist object = random_bytes(options.size, 7);
  Chunks chunks;
  if (code->encode(all, object, &chunks)) fail("the object is not encoded");
  std::set<int> lost;
  Chunks rest = chunks;
  for (unsigned place = 0; place < options.erasures; ++place) {
    lost.insert(static_cast<int>(place));
    rest.erase(static_cast<int>(place));
  }
  const double start = seconds(CLOCK_MONOTONIC);
  for (unsigned i = 0; i < options.iterations; ++i) {
    Chunks made;
    const int r = options.workload == "encode"
                      ? code->encode(all, object, &made)
                      : code->decode(lost, rest, &made, static_cast<int>(chunks.begin()->second.length()));
    if (r) fail("error " + std::to_string(r));
  }
  std::printf("%f\t%llu\n", seconds(CLOCK_MONOTONIC) - start,
              static_cast<unsigned long long>(options.size) * options.iterations / 1024);
}

}  // namespace

int main(int argc, char **argv) {
  Options options;
  if (argc < 2) fail("usage: gestalt_ec_benchmark DIRECTORY --plugin NAME --parameter NAME=VALUE... | --sweep JSON");
  options.directory = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") {
      options.quick = true;
      continue;
    }
    if (i + 1 == argc) fail(option + " needs a value");
    const std::string value = argv[++i];
    if (option == "--plugin") options.plugin = value;
    else if (option == "--workload") options.workload = value;
    else if (option == "--sweep") options.sweep = value;
    else if (option == "--place") options.place = value;
    else if (option == "--size") options.size = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (option == "--iterations") options.iterations = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (option == "--erasures") options.erasures = static_cast<unsigned>(std::strtoul(value.c_str(), nullptr, 10));
    else if (option != "--parameter" || !add_parameter(value, &options.profile)) fail("unknown option " + option);
  }
  if (options.place != "processor") rate_clock = CLOCK_MONOTONIC;
  begin();
  options.sweep.empty() ? one(options) : sweep(options);
  return 0;
}
