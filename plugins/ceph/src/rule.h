// The CRUSH rule of a pool.
#ifndef GESTALT_CEPH_RULE_H
#define GESTALT_CEPH_RULE_H

#include <ostream>
#include <string>

#include "erasure_code.h"

namespace gestalt {

// Makes a rule that puts `chunks` chunks into different failure domains. The rule's number, or a negative errno.
int create_rule(const std::string &name, CrushWrapper &crush, const std::string &root, const std::string &failure_domain,
                const std::string &device_class, unsigned chunks, std::ostream *ss);

}  // namespace gestalt

#endif
