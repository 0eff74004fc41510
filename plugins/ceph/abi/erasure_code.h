// What an erasure-code plugin and the daemon that loads it know of each other, in Ceph 16.2 ("pacific").
//
// Debian packages librados' headers, and with them `bufferlist`, but not the headers of plugins. These are declarations of the same
// layout, written for this plugin: nothing here has a body of its own, and nothing may be added or moved.
//
// How the layout is known, and kept: `cargo xtask test ceph` reads the order of the virtual functions out of Debian's own `libec_isa.so`
// and compares it with this plugin's; `GESTALT_CEPH_RELEASE` must be the release that is built against; and Ceph itself refuses a plugin
// that does not name the daemon's exact version (`__erasure_code_version`).
#ifndef GESTALT_CEPH_ERASURE_CODE_H
#define GESTALT_CEPH_ERASURE_CODE_H

#include <rados/buffer.h>

#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

// The release whose layout this is. The build compares it with the version of the Ceph that is installed.
#define GESTALT_CEPH_RELEASE "16.2."

// The map of devices and rules. The plugin only asks it for a rule; of its members it touches `crush` alone (see `rule.cc`).
class CrushWrapper {
 public:
  int add_simple_rule(std::string name, std::string root, std::string failure_domain, std::string device_class,
                      std::string mode, int rule_type, std::ostream *err);
};

namespace ceph {

using ErasureCodeProfile = std::map<std::string, std::string>;

// A code that was made from a profile. Chunks are named by their places 0..get_chunk_count(). Functions that return an int
// return 0 or a negative errno.
class ErasureCodeInterface {
 public:
  virtual ~ErasureCodeInterface() = default;
  virtual int init(ErasureCodeProfile &profile, std::ostream *ss) = 0;
  virtual const ErasureCodeProfile &get_profile() const = 0;
  virtual int create_rule(const std::string &name, CrushWrapper &crush, std::ostream *ss) const = 0;
  virtual unsigned int get_chunk_count() const = 0;
  virtual unsigned int get_data_chunk_count() const = 0;
  virtual unsigned int get_coding_chunk_count() const = 0;
  virtual int get_sub_chunk_count() = 0;
  virtual unsigned int get_chunk_size(unsigned int object_size) const = 0;
  virtual int minimum_to_decode(const std::set<int> &want_to_read, const std::set<int> &available,
                                std::map<int, std::vector<std::pair<int, int>>> *minimum) = 0;
  virtual int minimum_to_decode_with_cost(const std::set<int> &want_to_read, const std::map<int, int> &available,
                                          std::set<int> *minimum) = 0;
  virtual int encode(const std::set<int> &want_to_encode, const bufferlist &in,
                     std::map<int, bufferlist> *encoded) = 0;
  virtual int encode_chunks(const std::set<int> &want_to_encode, std::map<int, bufferlist> *encoded) = 0;
  virtual int decode(const std::set<int> &want_to_read, const std::map<int, bufferlist> &chunks,
                     std::map<int, bufferlist> *decoded, int chunk_size) = 0;
  virtual int decode_chunks(const std::set<int> &want_to_read, const std::map<int, bufferlist> &chunks,
                            std::map<int, bufferlist> *decoded) = 0;
  virtual const std::vector<int> &get_chunk_mapping() const = 0;
  virtual int decode_concat(const std::map<int, bufferlist> &chunks, bufferlist *decoded) = 0;
};

using ErasureCodeInterfaceRef = std::shared_ptr<ErasureCodeInterface>;

// What a plugin registers: it makes codes.
class ErasureCodePlugin {
 public:
  // From `dlopen`; the registry sets it.
  void *library = nullptr;
  virtual ~ErasureCodePlugin() = default;
  virtual int factory(const std::string &directory, ErasureCodeProfile &profile,
                      ErasureCodeInterfaceRef *erasure_code, std::ostream *ss) = 0;
};

// The daemon's list of plugins. A plugin calls `add` on the daemon's own one, while it is being loaded.
class ErasureCodePluginRegistry {
 public:
  static ErasureCodePluginRegistry singleton;
  int add(const std::string &name, ErasureCodePlugin *plugin);

#ifdef GESTALT_CEPH_REGISTRY
  // For programs that load plugins themselves (`tools/registry.cc`): the same functions, with these members.
  int factory(const std::string &plugin, const std::string &directory, ErasureCodeProfile &profile,
              ErasureCodeInterfaceRef *erasure_code, std::ostream *ss);
  int load(const std::string &plugin, const std::string &directory, ErasureCodePlugin **made, std::ostream *ss);
  ErasureCodePlugin *get(const std::string &name);

 private:
  std::map<std::string, ErasureCodePlugin *> plugins;
#endif
};

}  // namespace ceph

extern "C" {
const char *__erasure_code_version();
int __erasure_code_init(char *plugin_name, char *directory);
}

#endif
