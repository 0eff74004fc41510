// Ceph's registry of plugins, for programs that are no daemons: the daemons have it inside, and no package has it in a library.
#ifndef GESTALT_CEPH_REGISTRY_H
#define GESTALT_CEPH_REGISTRY_H

#include <string>

#include "erasure_code.h"

namespace tools {

using Profile = ceph::ErasureCodeProfile;
using Code = ceph::ErasureCodeInterfaceRef;
using Chunks = std::map<int, ceph::bufferlist>;

// What plugins expect of their process: a context to log with. Call it first.
void begin();

// "name=value" into a profile; false if there is no "=".
bool add_parameter(const std::string &text, Profile *profile);

// Makes the code of a profile with the plugin of this name in this folder. Ends the program if that fails.
Code make(const std::string &plugin, const std::string &directory, Profile profile);

// The same bytes for the same seed, whatever the machine.
ceph::bufferlist random_bytes(unsigned len, std::uint64_t seed);

// Places 0..count.
std::set<int> places(unsigned count);

// Calls `visit` with every set of `size` places below `count`, or with the first `limit` of them.
template <typename Visit>
void each_choice(unsigned count, unsigned size, unsigned limit, Visit visit) {
  std::vector<unsigned> at(size);
  for (unsigned i = 0; i < size; ++i) at[i] = i;
  for (unsigned done = 0; size <= count && done < limit; ++done) {
    visit(std::set<int>(at.begin(), at.end()));
    int i = static_cast<int>(size) - 1;
    while (i >= 0 && at[i] == count - size + static_cast<unsigned>(i)) --i;
    if (i < 0) return;
    ++at[i];
    for (unsigned j = static_cast<unsigned>(i) + 1; j < size; ++j) at[j] = at[j - 1] + 1;
  }
}

}  // namespace tools

#endif
