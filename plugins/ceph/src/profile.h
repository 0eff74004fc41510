// What an administrator may write into a profile, and what becomes of it.
#ifndef GESTALT_CEPH_PROFILE_H
#define GESTALT_CEPH_PROFILE_H

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "erasure_code.h"
#include "gestalt_codec.h"

namespace gestalt {

struct FreeCodec {
  void operator()(gestalt_codec *codec) const { gestalt_codec_free(codec); }
};
using Codec = std::unique_ptr<gestalt_codec, FreeCodec>;

// A profile that was understood.
struct Settings {
  Codec codec;
  // Where the chunk of each role is kept; empty if role i is at place i.
  std::vector<int> mapping;
  std::string root;
  std::string failure_domain;
  std::string device_class;
};

// Reads a profile, and writes defaults into it: Ceph keeps the result and compares it. 0, or -EINVAL with a sentence in `ss` for each
// thing that is wrong.
int read_profile(ceph::ErasureCodeProfile &profile, Settings *settings, std::ostream *ss);

}  // namespace gestalt

#endif
