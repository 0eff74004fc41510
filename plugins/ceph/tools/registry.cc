// The registry as plugins see it: `singleton` and `add` to register themselves, and `factory` for those, such as `lrc`, that are made
// of others. It is exported from each program here (`-rdynamic`), as it is from Ceph's daemons. The version check is Ceph's.

#include "registry.h"

#include <dlfcn.h>
#include <rados/librados.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace ceph {

namespace common {
class CephContext;
}
namespace global {
extern common::CephContext *g_ceph_context;
}

ErasureCodePluginRegistry ErasureCodePluginRegistry::singleton;

int ErasureCodePluginRegistry::add(const std::string &name, ErasureCodePlugin *plugin) {
  return plugins.emplace(name, plugin).second ? 0 : -EEXIST;
}

ErasureCodePlugin *ErasureCodePluginRegistry::get(const std::string &name) {
  const auto found = plugins.find(name);
  return found == plugins.end() ? nullptr : found->second;
}

int ErasureCodePluginRegistry::load(const std::string &name, const std::string &directory, ErasureCodePlugin **made,
                                    std::ostream *ss) {
  const std::string file = directory + "/libec_" + name + ".so";
  void *library = dlopen(file.c_str(), RTLD_NOW);
  if (!library) {
    *ss << "load dlopen(" << file << "): " << dlerror();
    return -EIO;
  }
  using Version = const char *(*)();
  using Init = int (*)(const char *, const char *);
  const auto version = reinterpret_cast<Version>(dlsym(library, "__erasure_code_version"));
  if (!version || std::strcmp(version(), GESTALT_CEPH_VERSION) != 0) {
    *ss << "expected plugin " << file << " to be version " << GESTALT_CEPH_VERSION << " but it claims to be "
        << (version ? version() : "an older version") << " instead";
    return -EXDEV;
  }
  const auto init = reinterpret_cast<Init>(dlsym(library, "__erasure_code_init"));
  const int r = init ? init(name.c_str(), directory.c_str()) : -ENOENT;
  if (r) {
    *ss << "erasure_code_init(" << name << "," << directory << "): " << std::strerror(-r);
    return r;
  }
  *made = get(name);
  if (!*made) return -EBADF;
  (*made)->library = library;
  return 0;
}

int ErasureCodePluginRegistry::factory(const std::string &name, const std::string &directory, ErasureCodeProfile &profile,
                                       ErasureCodeInterfaceRef *erasure_code, std::ostream *ss) {
  ErasureCodePlugin *plugin = get(name);
  int r = plugin ? 0 : load(name, directory, &plugin, ss);
  if (r == 0) r = plugin->factory(directory, profile, erasure_code, ss);
  if (r == 0 && profile != (*erasure_code)->get_profile()) {
    *ss << "the profile is not the one that the plugin keeps";
    return -EINVAL;
  }
  return r;
}

}  // namespace ceph

namespace tools {

void begin() {
  rados_t cluster;
  if (rados_create(&cluster, nullptr)) {
    std::fprintf(stderr, "librados gives no context\n");
    std::exit(2);
  }
  ceph::global::g_ceph_context = static_cast<ceph::common::CephContext *>(rados_cct(cluster));
}

bool add_parameter(const std::string &text, Profile *profile) {
  const size_t end = text.find('=');
  if (end == std::string::npos) return false;
  (*profile)[text.substr(0, end)] = text.substr(end + 1);
  return true;
}

Code make(const std::string &plugin, const std::string &directory, Profile profile) {
  Code code;
  const int r =
      ceph::ErasureCodePluginRegistry::singleton.factory(plugin, directory, profile, &code, &std::cerr);
  if (r) {
    std::cerr << "\nno code of plugin " << plugin << ": " << std::strerror(-r) << std::endl;
    std::exit(1);
  }
  return code;
}

ceph::bufferlist random_bytes(unsigned len, std::uint64_t seed) {
  ceph::bufferptr bytes(ceph::buffer::create_aligned(len ? len : 1, 64));
  std::uint64_t state = seed * 2 + 1;
  for (unsigned i = 0; i < len; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    bytes.c_str()[i] = static_cast<char>(state >> 56);
  }
  ceph::bufferlist list;
  list.append(bytes, 0, len);
  return list;
}

std::set<int> places(unsigned count) {
  std::set<int> all;
  for (unsigned place = 0; place < count; ++place) all.insert(static_cast<int>(place));
  return all;
}

}  // namespace tools
