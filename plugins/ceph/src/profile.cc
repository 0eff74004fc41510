// Profiles are read as Ceph's own plugins read them: a key that is missing or empty gets its default, which is written back; a number that
// is none is an error that names the default; what cannot be is refused with the limit. Keys that nobody knows are left alone: the monitor
// has some of its own.

#include "profile.h"

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace gestalt {
namespace {

using Profile = ceph::ErasureCodeProfile;

const char *const kTechniques = "rs, lch, isal-cauchy, isal-vandermonde, jerasure-reed_sol_van, lrc";

std::string text(Profile &profile, const std::string &name, const std::string &otherwise) {
  std::string &value = profile[name];
  if (value.empty()) value = otherwise;
  return value;
}

int number(Profile &profile, const std::string &name, const std::string &otherwise, int *value, std::ostream *ss) {
  const std::string written = text(profile, name, otherwise);
  char *end = nullptr;
  errno = 0;
  const long read = std::strtol(written.c_str(), &end, 10);
  const bool is_number = end != written.c_str() && *end == '\0';
  const bool fits = errno == 0 && read >= INT_MIN && read <= INT_MAX;
  if (is_number && fits) {
    *value = static_cast<int>(read);
    return 0;
  }
  *ss << "could not convert " << name << "=" << written << " to int because "
      << (is_number ? "The option value '" + written + "' seems to be too large"
                    : "Expected option value to be integer, got '" + written + "'")
      << ", set to default " << otherwise << std::endl;
  *value = std::atoi(otherwise.c_str());
  return -EINVAL;
}

int at_least(const std::string &name, int value, int least, std::ostream *ss) {
  if (value >= least) return 0;
  *ss << name << "=" << value << " must be >= " << least << std::endl;
  return -EINVAL;
}

// A number with a lower limit.
int bounded(Profile &profile, const std::string &name, const std::string &otherwise, int least, int *value,
            std::ostream *ss) {
  const int r = number(profile, name, otherwise, value, ss);
  return r ? r : at_least(name, *value, least, ss);
}

// The codec of this name, or the codec's reason why there is none.
int make(int made, gestalt_codec *codec, const Profile &profile, Settings *settings, std::ostream *ss) {
  settings->codec.reset(codec);
  if (made == GESTALT_CODEC_OK) return 0;
  *ss << "technique=" << profile.at("technique") << ": " << gestalt_codec_last_error() << std::endl;
  return -EINVAL;
}

// technique=lrc with k, l and r, or technique=lrc(k,l,r), which sets them.
int read_lrc(Profile &profile, Settings *settings, std::ostream *ss) {
  const std::string technique = profile.at("technique");
  if (technique != "lrc") {
    int k = 0, l = 0, r = 0, end = 0;
    if (std::sscanf(technique.c_str(), "lrc(%d,%d,%d)%n", &k, &l, &r, &end) != 3 ||
        static_cast<size_t>(end) != technique.size()) {
      *ss << "technique=" << technique << " is not understood: write lrc(k,l,r), such as lrc(12,2,2)" << std::endl;
      return -EINVAL;
    }
    for (const auto &[name, value] : {std::pair{"k", k}, {"l", l}, {"r", r}}) {
      const std::string written = text(profile, name, std::to_string(value));
      if (written != std::to_string(value)) {
        *ss << "technique=" << technique << " contradicts " << name << "=" << written << std::endl;
        return -EINVAL;
      }
    }
  }
  int k = 0, l = 0, r = 0;
  int err = bounded(profile, "k", "4", 2, &k, ss);
  err |= bounded(profile, "l", "2", 1, &l, ss);
  err |= bounded(profile, "r", "2", 0, &r, ss);
  if (err) return -EINVAL;
  int m = l + r;
  if (profile.count("m") && (number(profile, "m", std::to_string(l + r), &m, ss) || m != l + r)) {
    *ss << "m=" << profile.at("m") << " must be l + r = " << l + r << ", or left out" << std::endl;
    return -EINVAL;
  }
  const std::string scheme =
      "lrc(" + std::to_string(k) + "," + std::to_string(l) + "," + std::to_string(r) + ")";
  gestalt_codec *codec = nullptr;
  const int made = gestalt_codec_new_scheme(scheme.c_str(), &codec);
  return make(made, codec, profile, settings, ss);
}

int read_reed_solomon(Profile &profile, Settings *settings, std::ostream *ss) {
  const std::string technique = profile.at("technique");
  int k = 0, m = 0;
  int err = bounded(profile, "k", "7", 2, &k, ss);
  err |= bounded(profile, "m", "3", 1, &m, ss);
  if (err) return -EINVAL;
  gestalt_codec *codec = nullptr;
  int made;
  if (technique == "isal-cauchy" && m == 1) {
    // Ceph's isa stores the XOR for a single parity, whatever its matrix says.
    const std::string scheme = "xor(" + std::to_string(k) + "+1)";
    made = gestalt_codec_new_scheme(scheme.c_str(), &codec);
  } else {
    made = gestalt_codec_new(technique.c_str(), k, m, &codec);
  }
  return make(made, codec, profile, settings, ss);
}

int read_technique(Profile &profile, Settings *settings, std::ostream *ss) {
  const std::string technique = text(profile, "technique", "rs");
  if (technique.rfind("lrc", 0) == 0) return read_lrc(profile, settings, ss);
  const std::string known = std::string(", ") + kTechniques + ",";
  if (technique.find(',') != std::string::npos || known.find(", " + technique + ",") == std::string::npos) {
    *ss << "technique=" << technique << " is not a valid coding technique. Choose one of the following: " << kTechniques
        << std::endl;
    return -EINVAL;
  }
  return read_reed_solomon(profile, settings, ss);
}

// A letter for each chunk, D for data and anything else for parity, as with Ceph's own plugins.
int read_mapping(const Profile &profile, Settings *settings, std::ostream *ss) {
  const auto found = profile.find("mapping");
  if (found == profile.end()) return 0;
  const std::string &mapping = found->second;
  const size_t k = gestalt_codec_k(settings->codec.get()), n = k + gestalt_codec_m(settings->codec.get());
  std::vector<int> parities;
  for (size_t place = 0; place < mapping.size(); ++place) {
    (mapping[place] == 'D' ? settings->mapping : parities).push_back(static_cast<int>(place));
  }
  if (mapping.size() != n || settings->mapping.size() != k) {
    *ss << "mapping " << mapping << " maps " << mapping.size() << " chunks, " << settings->mapping.size()
        << " of them data, instead of the expected " << n << " and " << k << std::endl;
    return -EINVAL;
  }
  settings->mapping.insert(settings->mapping.end(), parities.begin(), parities.end());
  return 0;
}

int read_place(Profile &profile, Settings *settings, std::ostream *ss) {
  const std::string place = text(profile, "place", "processor");
  if (gestalt_codec_set_place(settings->codec.get(), place.c_str()) == GESTALT_CODEC_OK) return 0;
  *ss << "place=" << place << ": " << gestalt_codec_last_error() << std::endl;
  return -EINVAL;
}

}  // namespace

int read_profile(ceph::ErasureCodeProfile &profile, Settings *settings, std::ostream *ss) {
  settings->root = text(profile, "crush-root", "default");
  settings->failure_domain = text(profile, "crush-failure-domain", "host");
  settings->device_class = text(profile, "crush-device-class", "");
  int r = read_technique(profile, settings, ss);
  if (r == 0) r = read_mapping(profile, settings, ss);
  if (r == 0) r = read_place(profile, settings, ss);
  return r;
}

}  // namespace gestalt
