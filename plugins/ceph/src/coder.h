// Ceph's interface of a code, over the codec.
#ifndef GESTALT_CEPH_CODER_H
#define GESTALT_CEPH_CODER_H

#include "profile.h"

namespace gestalt {

using ceph::bufferlist;

// A *role* is a chunk by what it holds: data 0..k, then parities. A *place* is where Ceph keeps it; the two differ if the profile has
// a mapping. All that Ceph says is in places.
class Coder final : public ceph::ErasureCodeInterface {
 public:
  int init(ceph::ErasureCodeProfile &profile, std::ostream *ss) override;
  const ceph::ErasureCodeProfile &get_profile() const override { return profile_; }
  int create_rule(const std::string &name, CrushWrapper &crush, std::ostream *ss) const override;
  unsigned int get_chunk_count() const override { return k_ + m_; }
  unsigned int get_data_chunk_count() const override { return k_; }
  unsigned int get_coding_chunk_count() const override { return m_; }
  int get_sub_chunk_count() override { return 1; }
  unsigned int get_chunk_size(unsigned int object_size) const override;
  int minimum_to_decode(const std::set<int> &want, const std::set<int> &available,
                        std::map<int, std::vector<std::pair<int, int>>> *minimum) override;
  int minimum_to_decode_with_cost(const std::set<int> &want, const std::map<int, int> &available,
                                  std::set<int> *minimum) override;
  int encode(const std::set<int> &want, const bufferlist &in, std::map<int, bufferlist> *encoded) override;
  int encode_chunks(const std::set<int> &want, std::map<int, bufferlist> *encoded) override;
  int decode(const std::set<int> &want, const std::map<int, bufferlist> &chunks, std::map<int, bufferlist> *decoded,
             int chunk_size) override;
  int decode_chunks(const std::set<int> &want, const std::map<int, bufferlist> &chunks,
                    std::map<int, bufferlist> *decoded) override;
  const std::vector<int> &get_chunk_mapping() const override { return settings_.mapping; }
  int decode_concat(const std::map<int, bufferlist> &chunks, bufferlist *decoded) override;

 private:
  struct Costs;

  int place_of(unsigned role) const;
  int role_at(int place) const;
  int roles_at(const std::set<int> &places, std::vector<std::uint32_t> *roles) const;
  int cheapest(const std::set<int> &want, const Costs &costs, std::set<int> *minimum) const;
  int compute(const std::set<int> &want, const std::map<int, bufferlist> &chunks,
              std::map<int, bufferlist> *decoded) const;

  ceph::ErasureCodeProfile profile_;
  Settings settings_;
  unsigned k_ = 0, m_ = 0;
  // The role at each place, if there is a mapping.
  std::vector<unsigned> roles_;
};

}  // namespace gestalt

#endif
