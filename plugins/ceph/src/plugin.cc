// What a daemon looks up when it loads the plugin.

#include <cerrno>

#include "coder.h"

#ifndef GESTALT_CEPH_VERSION
#error "GESTALT_CEPH_VERSION is the version of the Ceph that this is for, such as \"16.2.15\": see docs/ceph.md"
#endif

namespace gestalt {
namespace {

class Plugin final : public ceph::ErasureCodePlugin {
 public:
  int factory(const std::string &, ceph::ErasureCodeProfile &profile, ceph::ErasureCodeInterfaceRef *erasure_code,
              std::ostream *ss) override {
    auto coder = std::make_unique<Coder>();
    const int r = coder->init(profile, ss);
    if (r) return r;
    *erasure_code = std::move(coder);
    return 0;
  }
};

}  // namespace
}  // namespace gestalt

#define GESTALT_VISIBLE __attribute__((visibility("default")))

// The registry compares this with its own version, to the letter.
extern "C" GESTALT_VISIBLE const char *__erasure_code_version() { return GESTALT_CEPH_VERSION; }

extern "C" GESTALT_VISIBLE int __erasure_code_init(char *plugin_name, char *) {
  // The codec is linked in; this is for those who link another one.
  if (gestalt_codec_abi() != GESTALT_CODEC_ABI) return -EXDEV;
  auto plugin = std::make_unique<gestalt::Plugin>();
  const int r = ceph::ErasureCodePluginRegistry::singleton.add(plugin_name, plugin.get());
  if (r == 0) plugin.release();
  return r;
}
