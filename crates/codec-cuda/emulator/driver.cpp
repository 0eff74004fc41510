// A CUDA driver without a card, for tests: as much of libcuda as the crate uses. Kernels are those of `shim.h`, in objects that the
// emulated NVRTC has compiled, or the generic ones where a module is PTX.
//
// It is as late as a driver may be: what is put into a stream is done when somebody waits for it, not before. Who forgets to wait, or
// reuses memory too early, gets wrong bytes. Copies from and to memory that is not page-locked are done at once, as the driver
// does them through buffers of its own.
//
// GESTALT_EMULATED_CUDA is a comma-separated list of: devices=N (default 1), memory=BYTES (of the device; default 256 MiB),
// lost-after=N (the context is lost with launch number N, or the next one after that), full-at=N (launch number N finds no memory).

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
};

struct dim3 {
    unsigned x, y, z;
};

typedef void Launch(void *kernel, dim3 grid, dim3 block, void **arguments);

struct Function {
    void *kernel;
    Launch *launch;
};

struct Module {
    void *object;
    std::map<std::string, Function *> functions;
};

struct Stream;

struct Event {
    // How many operations of `stream` were put in until it was recorded; the last one takes the time.
    Stream *stream = nullptr;
    uint64_t position = 0;
    std::shared_ptr<double> milliseconds;
};

struct Stream {
    std::deque<std::function<void()>> waiting;
    uint64_t done = 0;

    uint64_t put() const { return done + waiting.size(); }

    void drain(uint64_t position) {
        while (done < position && !waiting.empty()) {
            auto next = std::move(waiting.front());
            waiting.pop_front();
            next();
            done++;
        }
    }
};

std::recursive_mutex lock;
std::map<uintptr_t, size_t> device_memory, pinned_memory;
std::vector<Stream *> streams;
Stream null_stream;
size_t used = 0;
long launches = 0;
bool lost = false;

long option(const char *name, long otherwise) {
    const char *options = getenv("GESTALT_EMULATED_CUDA");
    const std::string all = std::string(",") + (options ? options : "");
    const size_t at = all.find(std::string(",") + name + "=");
    return at == std::string::npos ? otherwise : atol(all.c_str() + at + strlen(name) + 2);
}

Stream *stream_of(void *handle) {
    return handle ? static_cast<Stream *>(handle) : &null_stream;
}

bool is_within(const std::map<uintptr_t, size_t> &ranges, const void *start, size_t len) {
    auto after = ranges.upper_bound(uintptr_t(start));
    if (after == ranges.begin()) {
        return false;
    }
    --after;
    return uintptr_t(start) + len <= after->first + after->second;
}

void finish(Stream &stream) {
    stream.drain(stream.put());
}

void finish_all() {
    finish(null_stream);
    for (Stream *stream : streams) {
        finish(*stream);
    }
}

int copy(void *to, const void *from, size_t len, void *handle, const void *host, const void *device) {
    std::lock_guard guard(lock);
    if (lost) {
        return LAUNCH_FAILED;
    }
    if (!is_within(device_memory, device, len)) {
        return INVALID_VALUE;
    }
    Stream *stream = stream_of(handle);
    stream->waiting.push_back([=] { memcpy(to, from, len); });
    if (!is_within(pinned_memory, host, len)) {
        finish(*stream);
    }
    return SUCCESS;
}

// Arguments are read when a kernel is put into a stream.
struct Arguments {
    uint64_t values[8];
    void *pointers[8];
};

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

API cuInit(unsigned) {
    return option("devices", 1) > 0 ? SUCCESS : NO_DEVICE;
}

API cuDeviceGetCount(int *count) {
    *count = int(option("devices", 1));
    return SUCCESS;
}

API cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < option("devices", 1) ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGetName(char *name, int len, int) {
    strncpy(name, "emulated", size_t(len));
    return SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *bytes, int) {
    *bytes = size_t(option("memory", 256L << 20));
    return SUCCESS;
}

API cuDeviceGetAttribute(int *value, int attribute, int) {
    // Compute capability 9.0; 1 multiprocessor; no memory pools.
    *value = attribute == 75 ? 9 : attribute == 16 ? 1 : 0;
    return SUCCESS;
}

API cuDevicePrimaryCtxRetain(void **context, int) {
    static int the_context;
    *context = &the_context;
    return SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(int) {
    return SUCCESS;
}

API cuCtxSetCurrent(void *) {
    return SUCCESS;
}

API cuCtxGetCurrent(void **context) {
    return cuDevicePrimaryCtxRetain(context, 0);
}

API cuCtxSynchronize() {
    std::lock_guard guard(lock);
    finish_all();
    return lost ? LAUNCH_FAILED : SUCCESS;
}

API cuMemGetInfo_v2(size_t *available, size_t *total) {
    std::lock_guard guard(lock);
    cuDeviceTotalMem_v2(total, 0);
    *available = *total - used;
    return SUCCESS;
}

API cuMemAlloc_v2(uint64_t *address, size_t len) {
    std::lock_guard guard(lock);
    if (lost) {
        return LAUNCH_FAILED;
    }
    if (len == 0) {
        return INVALID_VALUE;
    }
    void *memory = nullptr;
    if (used + len > size_t(option("memory", 256L << 20)) || posix_memalign(&memory, 256, len) != 0) {
        return OUT_OF_MEMORY;
    }
    // What was never written is not zero.
    memset(memory, 0xdb, len);
    device_memory[uintptr_t(memory)] = len;
    used += len;
    *address = uintptr_t(memory);
    return SUCCESS;
}

API cuMemFree_v2(uint64_t address) {
    std::lock_guard guard(lock);
    finish_all();
    auto found = device_memory.find(address);
    if (found == device_memory.end()) {
        return INVALID_VALUE;
    }
    used -= found->second;
    device_memory.erase(found);
    free(reinterpret_cast<void *>(address));
    return SUCCESS;
}

API cuMemHostAlloc(void **address, size_t len, unsigned) {
    std::lock_guard guard(lock);
    if (posix_memalign(address, 4096, len) != 0) {
        return OUT_OF_MEMORY;
    }
    pinned_memory[uintptr_t(*address)] = len;
    return SUCCESS;
}

API cuMemFreeHost(void *address) {
    std::lock_guard guard(lock);
    finish_all();
    if (pinned_memory.erase(uintptr_t(address)) == 0) {
        return INVALID_VALUE;
    }
    free(address);
    return SUCCESS;
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream) {
    void *device = reinterpret_cast<void *>(to);
    return copy(device, from, len, stream, from, device);
}

API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream) {
    const void *device = reinterpret_cast<const void *>(from);
    return copy(to, device, len, stream, to, device);
}

API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t len, void *handle) {
    std::lock_guard guard(lock);
    void *target = reinterpret_cast<void *>(to);
    const void *source = reinterpret_cast<const void *>(from);
    if (!is_within(device_memory, target, len) || !is_within(device_memory, source, len)) {
        return INVALID_VALUE;
    }
    stream_of(handle)->waiting.push_back([=] { memmove(target, source, len); });
    return SUCCESS;
}

API cuStreamCreate(void **stream, unsigned) {
    std::lock_guard guard(lock);
    streams.push_back(new Stream);
    *stream = streams.back();
    return SUCCESS;
}

API cuStreamDestroy_v2(void *) {
    // Kept: events may refer to it.
    return SUCCESS;
}

API cuStreamSynchronize(void *stream) {
    std::lock_guard guard(lock);
    finish(*stream_of(stream));
    return lost ? LAUNCH_FAILED : SUCCESS;
}

API cuEventCreate(void **event, unsigned) {
    *event = new Event;
    return SUCCESS;
}

API cuEventDestroy_v2(void *event) {
    delete static_cast<Event *>(event);
    return SUCCESS;
}

API cuEventRecord(void *event, void *stream) {
    std::lock_guard guard(lock);
    Stream *of = stream_of(stream);
    auto time = std::make_shared<double>(0);
    of->waiting.push_back([=] {
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        *time = std::chrono::duration<double, std::milli>(now).count();
    });
    *static_cast<Event *>(event) = {of, of->put(), time};
    return lost ? LAUNCH_FAILED : SUCCESS;
}

API cuEventSynchronize(void *event) {
    std::lock_guard guard(lock);
    const Event &waited = *static_cast<Event *>(event);
    if (waited.stream) {
        waited.stream->drain(waited.position);
    }
    return lost ? LAUNCH_FAILED : SUCCESS;
}

API cuEventQuery(void *event) {
    std::lock_guard guard(lock);
    const Event &asked = *static_cast<Event *>(event);
    return !asked.stream || asked.stream->done >= asked.position ? SUCCESS : NOT_READY;
}

API cuEventElapsedTime(float *milliseconds, void *start, void *end) {
    const Event &from = *static_cast<Event *>(start), &to = *static_cast<Event *>(end);
    if (cuEventQuery(start) != SUCCESS || cuEventQuery(end) != SUCCESS) {
        return NOT_READY;
    }
    *milliseconds = float(std::max(1e-6, *to.milliseconds - *from.milliseconds));
    return SUCCESS;
}

API cuEventElapsedTime_v2(float *milliseconds, void *start, void *end) {
    return cuEventElapsedTime(milliseconds, start, end);
}

API cuStreamWaitEvent(void *stream, void *event, unsigned) {
    std::lock_guard guard(lock);
    const Event waited = *static_cast<Event *>(event);
    if (waited.stream) {
        stream_of(stream)->waiting.push_back([=] { waited.stream->drain(waited.position); });
    }
    return SUCCESS;
}

API cuModuleLoadData(void **module, const void *image) {
    static const char MARK[] = "//emulated ";
    const std::string text = static_cast<const char *>(image);
    const char *generic = getenv("GESTALT_EMULATED_GENERIC");
    std::string path = generic ? generic : "";
    if (text.compare(0, strlen(MARK), MARK) == 0) {
        path = text.substr(strlen(MARK), text.find('\n') - strlen(MARK));
    } else if (text.find(".visible .entry combine_set") == std::string::npos) {
        return INVALID_IMAGE;
    }
    void *object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        return INVALID_IMAGE;
    }
    *module = new Module{object, {}};
    return SUCCESS;
}

API cuModuleUnload(void *) {
    return SUCCESS;
}

API cuModuleGetFunction(void **function, void *module, const char *name) {
    void *object = static_cast<Module *>(module)->object;
    void *kernel = dlsym(object, name);
    auto launch = reinterpret_cast<Launch *>(dlsym(object, "shim_launch"));
    if (!kernel || !launch) {
        return NOT_FOUND;
    }
    *function = new Function{kernel, launch};
    return SUCCESS;
}

API cuFuncGetAttribute(int *value, int, void *) {
    *value = 0;
    return SUCCESS;
}

API cuLaunchKernel(
    void *handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, void *stream,
    void **parameters, void **
) {
    std::lock_guard guard(lock);
    if (lost || ++launches >= option("lost-after", LONG_MAX)) {
        lost = true;
        return LAUNCH_FAILED;
    }
    if (launches == option("full-at", LONG_MAX)) {
        return OUT_OF_MEMORY;
    }
    if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1) {
        return INVALID_VALUE;
    }
    const Function function = *static_cast<Function *>(handle);
    auto *arguments = new Arguments;
    static const size_t sizes[8] = {8, 4, 4, 8, 8, 4, 4, 4};
    for (int i = 0; i < 8; i++) {
        memcpy(&arguments->values[i], parameters[i], sizes[i]);
        arguments->pointers[i] = &arguments->values[i];
    }
    stream_of(stream)->waiting.push_back([=] {
        function.launch(function.kernel, {gx, gy, gz}, {bx, by, bz}, arguments->pointers);
        delete arguments;
    });
    return SUCCESS;
}

API cuGetErrorName(int result, const char **name) {
    *name = result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
        : result == LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
        : result == NO_DEVICE       ? "CUDA_ERROR_NO_DEVICE"
                                    : "CUDA_ERROR";
    return SUCCESS;
}

API cuGetErrorString(int result, const char **text) {
    return cuGetErrorName(result, text);
}
