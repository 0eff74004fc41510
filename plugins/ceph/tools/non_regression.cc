// That chunks are what they were: pools outlive versions of the plugin. A corpus has a line for each profile, with a sum of each chunk of
// one object; `--create` writes it, otherwise the chunks of today are compared with it, and each chunk is repaired in turn, then pairs.
//
//   gestalt_ec_non_regression DIRECTORY CORPUS [--create]

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "registry.h"

namespace {

using namespace tools;

constexpr unsigned kObjectLen = 37'003;
constexpr std::uint64_t kSeed = 20'000;

const char *const kProfiles[] = {
    "technique=rs k=2 m=1",
    "technique=rs k=4 m=2",
    "technique=rs k=7 m=3",
    "technique=rs k=20 m=8",
    "technique=lch k=4 m=2",
    "technique=lch k=10 m=4",
    "technique=lch k=20 m=8",
    "technique=isal-cauchy k=8 m=1",
    "technique=isal-cauchy k=7 m=3",
    "technique=isal-vandermonde k=7 m=3",
    "technique=isal-vandermonde k=21 m=4",
    "technique=jerasure-reed_sol_van k=7 m=3",
    "technique=lrc k=12 l=2 r=2",
    "technique=lrc(6,3,1)",
    "technique=rs k=4 m=2 mapping=D_DD_D",
};

// FNV-1a, 64 bits.
std::uint64_t sum(const ceph::bufferlist &chunk) {
  ceph::bufferlist copy = chunk;
  const char *bytes = copy.c_str();
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (unsigned i = 0; i < copy.length(); ++i) sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3u;
  return sum;
}

Code code_of(const std::string &directory, const std::string &text) {
  std::istringstream words(text);
  Profile profile;
  for (std::string word; words >> word;) add_parameter(word, &profile);
  return make("gestalt", directory, profile);
}

// The line of a profile; also repairs what is lost in turn.
std::string line_of(const std::string &directory, const std::string &text) {
  const Code code = code_of(directory, text);
  const unsigned n = code->get_chunk_count();
  Chunks chunks;
  if (code->encode(places(n), random_bytes(kObjectLen, kSeed), &chunks)) return text + ": not encoded";
  bool repaired = true;
  for (unsigned count = 1; count <= std::min(2u, code->get_coding_chunk_count()); ++count) {
    each_choice(n, count, 10'000, [&](const std::set<int> &lost) {
      Chunks rest = chunks, decoded;
      for (int place : lost) rest.erase(place);
      repaired = repaired && code->decode(lost, rest, &decoded, 0) == 0;
      for (int place : lost) repaired = repaired && decoded[place].contents_equal(chunks[place]);
    });
  }
  if (!repaired) return text + ": not repaired";
  std::string line = text + ":";
  for (const auto &[place, chunk] : chunks) {
    char digits[24];
    std::snprintf(digits, sizeof digits, " %016" PRIx64, sum(chunk));
    line += digits;
  }
  return line;
}

}  // namespace

int main(int argc, char **argv) {
  const bool create = argc == 4 && std::strcmp(argv[3], "--create") == 0;
  if (argc != 3 && !create) {
    std::cerr << "usage: gestalt_ec_non_regression DIRECTORY CORPUS [--create]" << std::endl;
    return 2;
  }
  begin();
  std::ostringstream lines;
  for (const char *profile : kProfiles) lines << line_of(argv[1], profile) << "\n";
  if (create) {
    std::ofstream(argv[2]) << lines.str();
    return 0;
  }
  std::ifstream corpus(argv[2]);
  std::stringstream kept;
  kept << corpus.rdbuf();
  if (kept.str() != lines.str()) {
    std::cerr << "FAILED: chunks are not those of " << argv[2] << ". They are now\n" << lines.str();
    return 1;
  }
  std::printf("%zu profiles: chunks are those of the corpus\n", std::size(kProfiles));
  return 0;
}
