// A simple rule allows pools of 3 to 20 chunks. Ceph's own plugins then write their number of chunks into the rule, by an inline function of
// a header that is not packaged. This does the same to the same bytes: `CrushWrapper` begins with eight maps and the pointer to
// the map of CRUSH, whose rules begin with a length and four bytes, the last of which is the largest size.
// `cargo xtask test ceph` makes a pool of 22 chunks, which a rule with another byte there would not allow.

#include "rule.h"

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace gestalt {
namespace {

// `pg_pool_t::TYPE_ERASURE`.
constexpr int kErasure = 3;

struct Rule {
  std::uint32_t length;
  std::uint8_t ruleset, type, min_size, max_size;
};

struct CrushMap {
  void *buckets;
  Rule **rules;
  std::int32_t max_buckets;
  std::uint32_t max_rules;
};

// Where `CrushWrapper` keeps its pointer.
constexpr size_t kMapOffset = 8 * sizeof(std::map<int, int>);

}  // namespace

int create_rule(const std::string &name, CrushWrapper &crush, const std::string &root, const std::string &failure_domain,
                const std::string &device_class, unsigned chunks, std::ostream *ss) {
  const int id = crush.add_simple_rule(name, root, failure_domain, device_class, "indep", kErasure, ss);
  if (id < 0) return id;
  CrushMap *map = nullptr;
  std::memcpy(&map, reinterpret_cast<const char *>(&crush) + kMapOffset, sizeof map);
  if (!map || static_cast<std::uint32_t>(id) >= map->max_rules || !map->rules[id]) return -EINVAL;
  Rule *rule = map->rules[id];
  rule->max_size = static_cast<std::uint8_t>(chunks > 255 ? 255 : chunks);
  if (chunks < rule->min_size) rule->min_size = static_cast<std::uint8_t>(chunks);
  return id;
}

}  // namespace gestalt
