// What a pool relies on, at the level of chunks: that ours and Ceph's own plugins make the same bytes and repair each other's, that the
// reads which are asked for suffice and are the cheapest, and that a bad profile is refused with a sentence.
//
//   gestalt_ec_check DIRECTORY [--place processor|auto|card]      a folder with libec_gestalt.so, libec_isa.so and libec_jerasure.so

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "registry.h"

namespace {

using namespace tools;
using ceph::bufferlist;

std::string directory, place = "processor";
unsigned checks = 0;

// Ours, where the caller wants it to compute.
Code ours_of(Profile profile) {
  profile["place"] = place;
  return make("gestalt", directory, profile);
}

// Ends the program with what is wrong.
void require(bool holds, const std::string &what) {
  ++checks;
  if (holds) return;
  std::cerr << "FAILED: " << what << std::endl;
  std::exit(1);
}

Chunks encode(const Code &code, const bufferlist &object) {
  Chunks chunks;
  require(code->encode(places(code->get_chunk_count()), object, &chunks) == 0, "an object is encoded");
  return chunks;
}

Chunks without(const Chunks &chunks, const std::set<int> &lost) {
  Chunks rest = chunks;
  for (int place : lost) rest.erase(place);
  return rest;
}

// That `reader` makes the lost chunks of `chunks` from the others.
void repair(const Code &reader, const Chunks &chunks, const std::set<int> &lost, const std::string &what) {
  Chunks decoded;
  const int len = static_cast<int>(chunks.begin()->second.length());
  require(reader->decode(lost, without(chunks, lost), &decoded, len) == 0, what + ": decode");
  for (int place : lost) require(decoded.at(place).contents_equal(chunks.at(place)), what + ": the lost bytes");
}

struct Pair {
  const char *ours;
  const char *plugin;
  Profile theirs;
};

void exchange(const Pair &pair, unsigned k, unsigned m) {
  Profile sizes{{"k", std::to_string(k)}, {"m", std::to_string(m)}}, theirs = pair.theirs;
  theirs.insert(sizes.begin(), sizes.end());
  sizes["technique"] = pair.ours;
  const Code ours = ours_of(sizes), other = make(pair.plugin, directory, theirs);
  const std::string what =
      std::string(pair.ours) + "(" + std::to_string(k) + "+" + std::to_string(m) + ") beside " + pair.plugin;
  for (unsigned len : {1u, 31u, 4096u, k * 4096, k * 4096 - 5, 100'003u}) {
    const bufferlist object = random_bytes(len, len + k);
    require(ours->get_chunk_size(len) == other->get_chunk_size(len), what + ": chunk size");
    const Chunks a = encode(ours, object), b = encode(other, object);
    require(a.size() == b.size(), what + ": number of chunks");
    for (const auto &[place, chunk] : a) require(chunk.contents_equal(b.at(place)), what + ": the same chunks");
    for (unsigned count = 1; count <= m; ++count) {
      each_choice(k + m, count, len == 4096 ? 60 : 4, [&](const std::set<int> &lost) {
        repair(ours, b, lost, what + ", ours reads theirs");
        repair(other, a, lost, what + ", theirs reads ours");
      });
    }
    bufferlist whole, again;
    std::set<int> first{0};
    require(ours->decode_concat(without(b, first), &whole) == 0, what + ": decode_concat");
    again.substr_of(whole, 0, len);
    require(again.contents_equal(object), what + ": the object");
  }
}

void exchange_all() {
  const Pair pairs[] = {
      {"isal-vandermonde", "isa", {{"technique", "reed_sol_van"}}},
      {"isal-cauchy", "isa", {{"technique", "cauchy"}}},
      {"jerasure-reed_sol_van", "jerasure", {{"technique", "reed_sol_van"}, {"w", "8"}}},
  };
  for (const Pair &pair : pairs) {
    for (auto [k, m] : {std::pair{2u, 1u}, {2u, 2u}, {3u, 2u}, {4u, 2u}, {6u, 3u}, {8u, 1u}, {8u, 4u}, {10u, 4u}, {21u, 4u}}) {
      exchange(pair, k, m);
    }
    std::printf("%s: chunks are those of %s, and both repair the other's\n", pair.ours, pair.plugin);
  }
}

std::set<int> keys(const std::map<int, std::vector<std::pair<int, int>>> &map) {
  std::set<int> keys;
  for (const auto &[place, parts] : map) keys.insert(place);
  return keys;
}

// Every loss of up to `losses` chunks: what `minimum_to_decode` asks for is there, and suffices.
void reads_suffice(Profile profile, unsigned losses) {
  const std::string what = "technique=" + profile["technique"];
  const Code code = ours_of(profile);
  const unsigned n = code->get_chunk_count();
  const Chunks chunks = encode(code, random_bytes(50'000, 3));
  for (unsigned count = 1; count <= losses; ++count) {
    each_choice(n, count, 400, [&](const std::set<int> &lost) {
      std::set<int> available = places(n);
      for (int place : lost) available.erase(place);
      std::map<int, std::vector<std::pair<int, int>>> minimum;
      require(code->minimum_to_decode(lost, available, &minimum) == 0, what + ": minimum_to_decode");
      const std::vector<std::pair<int, int>> all_of_it{{0, code->get_sub_chunk_count()}};
      for (const auto &[place, parts] : minimum) require(parts == all_of_it, what + ": whole chunks");
      Chunks read, decoded;
      for (int place : keys(minimum)) {
        require(available.count(place), what + ": only what is available is read");
        read[place] = chunks.at(place);
      }
      require(code->decode(lost, read, &decoded, 0) == 0, what + ": decode of the minimum");
      for (int place : lost) require(decoded.at(place).contents_equal(chunks.at(place)), what + ": the bytes");
    });
  }
}

void costs() {
  const Code rs = ours_of({{"technique", "rs"}, {"k", "3"}, {"m", "2"}});
  std::set<int> minimum;
  require(rs->minimum_to_decode_with_cost({2}, {{0, 1}, {1, 1}, {3, 9}, {4, 1}}, &minimum) == 0, "costs");
  require(minimum == std::set<int>{0, 1, 4}, "the dear parity is not read");
  minimum.clear();
  require(rs->minimum_to_decode_with_cost({2}, {{0, 1}, {1, 1}}, &minimum) == -EIO, "too few chunks are -EIO");
  require(rs->minimum_to_decode_with_cost({9}, {{0, 1}}, &minimum) == -EINVAL, "no such chunk is -EINVAL");
  const Code lrc = ours_of({{"technique", "lrc(12,2,2)"}});
  require(lrc->get_chunk_count() == 16, "lrc(12,2,2) has 16 chunks");
  std::map<int, std::vector<std::pair<int, int>>> local;
  std::set<int> available = places(16);
  available.erase(3);
  require(lrc->minimum_to_decode({3}, available, &local) == 0, "a local repair");
  require(keys(local) == std::set<int>{0, 1, 2, 4, 5, 12}, "one loss of an LRC reads its group alone");
}

void mapping() {
  const Code code = ours_of({{"k", "3"}, {"m", "2"}, {"mapping", "_DD_D"}});
  require(code->get_chunk_mapping() == std::vector<int>{1, 2, 4, 0, 3}, "the mapping");
  const bufferlist object = random_bytes(3 * 64, 5);
  const Chunks chunks = encode(code, object);
  bufferlist second, whole;
  second.substr_of(object, 64, 64);
  require(chunks.at(2).contents_equal(second), "data lies where the mapping says");
  require(code->decode_concat(without(chunks, {1, 4}), &whole) == 0, "decode_concat with a mapping");
  require(whole.contents_equal(object), "the object, with a mapping");
}

// An object in pieces, at odd addresses.
void scattered() {
  const Code code = ours_of({{"k", "4"}, {"m", "2"}});
  const bufferlist object = random_bytes(40'000, 6);
  bufferlist pieces;
  for (unsigned at = 0; at < object.length();) {
    const unsigned len = std::min(object.length() - at, 1 + at % 977);
    ceph::bufferptr piece(len + 3);
    object.begin(at).copy(len, piece.c_str() + 3);
    pieces.append(piece, 3, len);
    at += len;
  }
  const Chunks a = encode(code, object), b = encode(code, pieces);
  for (const auto &[place, chunk] : a) require(chunk.contents_equal(b.at(place)), "scattered objects have the same chunks");
  Chunks wanted;
  require(code->encode({1, 5}, object, &wanted) == 0 && wanted.size() == 2, "only what is wanted is returned");
  Chunks nothing;
  require(code->encode(places(6), bufferlist(), &nothing) == 0, "an empty object is encoded");
}

void refused(Profile profile, const std::string &sentence) {
  std::ostringstream said;
  Code code;
  const int r = ceph::ErasureCodePluginRegistry::singleton.factory("gestalt", directory, profile, &code, &said);
  require(r == -EINVAL && said.str().find(sentence) != std::string::npos, "expected \"" + sentence + "\", got " + std::to_string(r) + " \"" + said.str() + "\"");
}

void profiles() {
  refused({{"k", "1"}}, "k=1 must be >= 2");
  refused({{"m", "0"}}, "m=0 must be >= 1");
  refused({{"k", "many"}}, "could not convert k=many to int because Expected option value to be integer, got 'many'");
  refused({{"k", "99999999999"}}, "seems to be too large");
  refused({{"technique", "cauchy"}}, "technique=cauchy is not a valid coding technique. Choose one of the following: rs, lch,");
  refused({{"technique", "isal-vandermonde"}, {"k", "22"}, {"m", "4"}}, "is not MDS");
  refused({{"k", "250"}, {"m", "7"}}, "k + m <= 256");
  refused({{"technique", "lrc(4,5,1)"}}, "at most one for each data role");
  refused({{"technique", "lrc(4,2)"}}, "write lrc(k,l,r)");
  refused({{"technique", "lrc(4,2,1)"}, {"k", "5"}}, "contradicts k=5");
  refused({{"technique", "lrc"}, {"m", "9"}}, "m=9 must be l + r");
  refused({{"place", "attic"}}, "no place is called 'attic'");
  refused({{"k", "3"}, {"m", "2"}, {"mapping", "DD_D"}}, "maps 4 chunks");
  Profile defaults;
  ours_of(defaults);
}

}  // namespace

int main(int argc, char **argv) {
  const bool has_place = argc == 4 && std::string(argv[2]) == "--place";
  if (argc != 2 && !has_place) {
    std::cerr << "usage: gestalt_ec_check DIRECTORY [--place PLACE]" << std::endl;
    return 2;
  }
  directory = argv[1];
  if (has_place) place = argv[3];
  begin();
  profiles();
  costs();
  mapping();
  scattered();
  for (const char *technique : {"rs", "lch", "isal-cauchy", "isal-vandermonde", "jerasure-reed_sol_van"}) {
    reads_suffice({{"technique", technique}, {"k", "6"}, {"m", "3"}}, 3);
  }
  reads_suffice({{"technique", "lrc(6,2,2)"}}, 3);
  exchange_all();
  std::printf("%u checks passed\n", checks);
  return 0;
}
