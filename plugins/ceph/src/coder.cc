// Chunks are not copied if Ceph hands them over in one piece, wherever that begins: the codec takes any address and any length. What is in
// several pieces is put together first, as Ceph's own plugins do for whatever is not aligned.

#include "coder.h"

#include <algorithm>
#include <cerrno>

#include "rule.h"

namespace gestalt {
namespace {

// As `isa` and `jerasure` allocate chunks.
constexpr unsigned kAlign = 32;

using ceph::bufferptr;
using Chunks = std::map<int, bufferlist>;

std::uint8_t *bytes(bufferlist &chunk) { return reinterpret_cast<std::uint8_t *>(chunk.c_str()); }

// A chunk in one piece, as long as the others.
const std::uint8_t *whole(bufferlist &chunk) {
  if (!chunk.is_contiguous()) chunk.rebuild();
  return bytes(chunk);
}

bufferptr fresh(unsigned len) { return bufferptr(ceph::buffer::create_aligned(len, kAlign)); }

int errno_of(int status) {
  switch (status) {
    case GESTALT_CODEC_OK: return 0;
    case GESTALT_CODEC_LOST: return -EIO;
    default: return -EINVAL;
  }
}

bool has_all(const Chunks &chunks, const std::set<int> &want) {
  return std::all_of(want.begin(), want.end(), [&](int place) { return chunks.count(place) > 0; });
}

// Whether all chunks are of one length, and which.
bool same_length(const Chunks &chunks, unsigned *len) {
  if (chunks.empty()) return false;
  *len = chunks.begin()->second.length();
  return std::all_of(chunks.begin(), chunks.end(), [&](const auto &chunk) { return chunk.second.length() == *len; });
}

}  // namespace

// What is available, and at which cost each.
struct Coder::Costs {
  std::vector<std::uint32_t> roles;
  std::vector<std::uint32_t> costs;
};

int Coder::init(ceph::ErasureCodeProfile &profile, std::ostream *ss) {
  const int r = read_profile(profile, &settings_, ss);
  if (r) return r;
  k_ = gestalt_codec_k(settings_.codec.get());
  m_ = gestalt_codec_m(settings_.codec.get());
  roles_.resize(settings_.mapping.size());
  for (unsigned role = 0; role < roles_.size(); ++role) roles_[settings_.mapping[role]] = role;
  profile_ = profile;
  return 0;
}

int Coder::create_rule(const std::string &name, CrushWrapper &crush, std::ostream *ss) const {
  return gestalt::create_rule(name, crush, settings_.root, settings_.failure_domain, settings_.device_class,
                              get_chunk_count(), ss);
}

int Coder::place_of(unsigned role) const {
  return role < settings_.mapping.size() ? settings_.mapping[role] : static_cast<int>(role);
}

// -1 if there is no such place.
int Coder::role_at(int place) const {
  if (place < 0 || static_cast<unsigned>(place) >= get_chunk_count()) return -1;
  return static_cast<int>(roles_.empty() ? static_cast<unsigned>(place) : roles_[place]);
}

int Coder::roles_at(const std::set<int> &places, std::vector<std::uint32_t> *roles) const {
  for (int place : places) {
    const int role = role_at(place);
    if (role < 0) return -EINVAL;
    roles->push_back(static_cast<std::uint32_t>(role));
  }
  return 0;
}

unsigned int Coder::get_chunk_size(unsigned int object_size) const {
  size_t len = 0;
  if (gestalt_codec_chunk_size(settings_.codec.get(), object_size, gestalt_codec_alignment(), &len)) return 0;
  return static_cast<unsigned>(len);
}

int Coder::cheapest(const std::set<int> &want, const Costs &costs, std::set<int> *minimum) const {
  std::vector<std::uint32_t> wanted;
  if (roles_at(want, &wanted)) return -EINVAL;
  std::vector<std::uint32_t> reads(costs.roles.size());
  size_t count = 0;
  const int status = gestalt_codec_minimum_to_decode(
      settings_.codec.get(), wanted.data(), wanted.size(), costs.roles.data(),
      costs.costs.empty() ? nullptr : costs.costs.data(), costs.roles.size(), reads.data(), &count);
  for (size_t i = 0; status == GESTALT_CODEC_OK && i < count; ++i) minimum->insert(place_of(reads[i]));
  return errno_of(status);
}

int Coder::minimum_to_decode(const std::set<int> &want, const std::set<int> &available,
                             std::map<int, std::vector<std::pair<int, int>>> *minimum) {
  std::set<int> reads;
  if (std::includes(available.begin(), available.end(), want.begin(), want.end())) {
    reads = want;
  } else {
    Costs costs;
    if (roles_at(available, &costs.roles)) return -EINVAL;
    const int r = cheapest(want, costs, &reads);
    if (r) return r;
  }
  // Whole chunks: the codes have one sub-chunk.
  for (int place : reads) (*minimum)[place] = {{0, get_sub_chunk_count()}};
  return 0;
}

int Coder::minimum_to_decode_with_cost(const std::set<int> &want, const std::map<int, int> &available,
                                       std::set<int> *minimum) {
  Costs costs;
  for (const auto &[place, cost] : available) {
    const int role = role_at(place);
    if (role < 0) return -EINVAL;
    costs.roles.push_back(static_cast<std::uint32_t>(role));
    costs.costs.push_back(static_cast<std::uint32_t>(std::max(cost, 0)));
  }
  return cheapest(want, costs, minimum);
}

int Coder::encode(const std::set<int> &want, const bufferlist &in, Chunks *encoded) {
  const unsigned len = get_chunk_size(in.length());
  for (unsigned role = 0; role < k_; ++role) {
    bufferlist &chunk = (*encoded)[place_of(role)];
    const std::uint64_t begin = std::min<std::uint64_t>(in.length(), std::uint64_t{role} * len);
    const unsigned there = static_cast<unsigned>(std::min<std::uint64_t>(in.length() - begin, len));
    if (there == len) {
      chunk.substr_of(in, static_cast<unsigned>(begin), len);
      continue;
    }
    bufferptr padded = fresh(len);
    if (there > 0) in.begin(static_cast<unsigned>(begin)).copy(there, padded.c_str());
    padded.zero(there, len - there);
    chunk.push_back(std::move(padded));
  }
  for (unsigned role = k_; role < k_ + m_; ++role) (*encoded)[place_of(role)].push_back(fresh(len));
  const int r = len == 0 ? 0 : encode_chunks(want, encoded);
  for (unsigned place = 0; place < k_ + m_; ++place) {
    if (!want.count(static_cast<int>(place))) encoded->erase(static_cast<int>(place));
  }
  return r;
}

int Coder::encode_chunks(const std::set<int> &, Chunks *encoded) {
  unsigned len = 0;
  if (encoded->size() != k_ + m_ || !same_length(*encoded, &len)) return -EINVAL;
  std::vector<const std::uint8_t *> data(k_);
  std::vector<std::uint8_t *> parity(m_);
  for (unsigned role = 0; role < k_ + m_; ++role) {
    const auto chunk = encoded->find(place_of(role));
    if (chunk == encoded->end()) return -EINVAL;
    const std::uint8_t *start = whole(chunk->second);
    if (role < k_) {
      data[role] = start;
    } else {
      parity[role - k_] = const_cast<std::uint8_t *>(start);
    }
  }
  return errno_of(gestalt_codec_encode(settings_.codec.get(), data.data(), parity.data(), len));
}

// Computes the chunks of `want`, whose buffers are in `decoded`, from `chunks`.
int Coder::compute(const std::set<int> &want, const Chunks &chunks, Chunks *decoded) const {
  unsigned len = 0;
  if (!same_length(chunks, &len)) return -EINVAL;
  std::vector<std::uint32_t> present, wanted;
  std::vector<const std::uint8_t *> sources;
  std::vector<std::uint8_t *> outputs;
  // Their bytes may be put together in here, so they stay until the end.
  std::vector<bufferlist> pieces;
  pieces.reserve(chunks.size());
  for (const auto &[place, chunk] : chunks) {
    const int role = role_at(place);
    if (role < 0) return -EINVAL;
    present.push_back(static_cast<std::uint32_t>(role));
    pieces.push_back(chunk);
    sources.push_back(whole(pieces.back()));
  }
  if (roles_at(want, &wanted)) return -EINVAL;
  for (int place : want) {
    bufferlist &chunk = (*decoded)[place];
    if (chunk.length() != len) return -EINVAL;
    outputs.push_back(const_cast<std::uint8_t *>(whole(chunk)));
  }
  return errno_of(gestalt_codec_decode(settings_.codec.get(), present.data(), sources.data(), present.size(),
                                       wanted.data(), outputs.data(), wanted.size(), len));
}

int Coder::decode(const std::set<int> &want, const Chunks &chunks, Chunks *decoded, int) {
  std::set<int> missing;
  for (int place : want) {
    const auto chunk = chunks.find(place);
    if (chunk == chunks.end()) {
      missing.insert(place);
    } else {
      (*decoded)[place] = chunk->second;
    }
  }
  if (missing.empty()) return 0;
  if (chunks.empty()) return -EIO;
  const unsigned len = chunks.begin()->second.length();
  for (int place : missing) (*decoded)[place].push_back(fresh(len));
  return len == 0 ? 0 : compute(missing, chunks, decoded);
}

// Whoever calls this has made all buffers, and expects all that are missing; if that is more than can be computed, what it wants.
int Coder::decode_chunks(const std::set<int> &want, const Chunks &chunks, Chunks *decoded) {
  std::set<int> missing, wanted;
  for (const auto &[place, chunk] : *decoded) {
    if (chunks.count(place)) continue;
    missing.insert(place);
    if (want.count(place)) wanted.insert(place);
  }
  if (missing.empty()) return has_all(chunks, want) ? 0 : -EIO;
  const int r = compute(missing, chunks, decoded);
  return r == -EIO ? compute(wanted, chunks, decoded) : r;
}

int Coder::decode_concat(const Chunks &chunks, bufferlist *decoded) {
  std::set<int> want;
  for (unsigned role = 0; role < k_; ++role) want.insert(place_of(role));
  Chunks parts;
  const int r = decode(want, chunks, &parts, 0);
  for (unsigned role = 0; r == 0 && role < k_; ++role) decoded->claim_append(parts[place_of(role)]);
  return r;
}

}  // namespace gestalt
