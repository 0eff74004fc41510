// An NVRTC without a compiler for cards, for tests: it compiles for this processor, with `shim.h`, and the "PTX" that it gives names
// the object. GESTALT_EMULATED_CUDA_DIR is where `shim.h` is and objects go; CXX is the compiler (default g++).

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

struct Program {
    std::string source, log, ptx;
};

std::string directory() {
    const char *given = getenv("GESTALT_EMULATED_CUDA_DIR");
    return given ? given : ".";
}

int give(const std::string &text, char *to) {
    memcpy(to, text.c_str(), text.size() + 1);
    return 0;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API nvrtcVersion(int *major, int *minor) {
    *major = 12;
    *minor = 0;
    return 0;
}

API nvrtcCreateProgram(void **program, const char *source, const char *, int, const char *const *, const char *const *) {
    *program = new Program{source, "", ""};
    return 0;
}

API nvrtcDestroyProgram(void **program) {
    delete static_cast<Program *>(*program);
    return 0;
}

API nvrtcCompileProgram(void *handle, int, const char *const *) {
    static std::atomic<int> count{0};
    auto *program = static_cast<Program *>(handle);
    const std::string name = directory() + "/kernel-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    std::ofstream(name + ".cpp") << program->source;
    const char *compiler = getenv("CXX");
    const std::string command = std::string(compiler ? compiler : "g++") + " -std=c++17 -O1 -w -shared -fPIC -include " + directory()
        + "/shim.h -o " + name + ".so " + name + ".cpp 2> " + name + ".log";
    const int status = system(command.c_str());
    std::ifstream log(name + ".log");
    program->log.assign(std::istreambuf_iterator<char>(log), {});
    program->ptx = "//emulated " + name + ".so\n";
    return status == 0 ? 0 : 6;
}

API nvrtcGetProgramLogSize(void *program, size_t *size) {
    *size = static_cast<Program *>(program)->log.size() + 1;
    return 0;
}

API nvrtcGetProgramLog(void *program, char *log) {
    return give(static_cast<Program *>(program)->log, log);
}

API nvrtcGetPTXSize(void *program, size_t *size) {
    *size = static_cast<Program *>(program)->ptx.size() + 1;
    return 0;
}

API nvrtcGetPTX(void *program, char *ptx) {
    return give(static_cast<Program *>(program)->ptx, ptx);
}
