// From C++: values with owners, and a computation beside a transfer. Argument: the URI of a cluster.
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

namespace {

void check(int code) {
    if (code < 0) throw std::runtime_error(std::string(gestalt_code_name(code)) + ": " + gestalt_last_error());
}

// A client that ends with its scope.
class Client {
public:
    explicit Client(const std::string &uri) { check(gestalt_connect(uri.c_str(), nullptr, &handle_)); }
    ~Client() { gestalt_close(handle_); }
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;
    gestalt_client handle() const { return handle_; }

private:
    gestalt_client handle_ = 0;
};

// A request that ends with its scope, whatever happens: so no buffer outlives its use.
class Request {
public:
    Request() = default;
    ~Request() { if (handle_ != 0) gestalt_release(handle_); }
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;
    gestalt_request *place() { return &handle_; }
    gestalt_outcome wait() const {
        gestalt_outcome outcome;
        check(gestalt_wait(handle_, -1));
        check(gestalt_result(handle_, &outcome));
        return outcome;
    }

private:
    gestalt_request handle_ = 0;
};

}  // namespace

int main(int argc, char **argv) {
    CHECK(argc, 2);
    Client client(argv[1]);
    std::vector<std::uint64_t> numbers(50000), back(50000);
    std::iota(numbers.begin(), numbers.end(), 1);
    const std::size_t bytes = numbers.size() * sizeof numbers[0];
    {
        Request request;
        check(gestalt_iset(client.handle(), "numbers", 7, numbers.data(), bytes, nullptr, request.place()));
        // The value may be read meanwhile.
        CHECK(std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}), 50000ull * 50001 / 2);
        CHECK(request.wait().code, GESTALT_OK);
    }
    Request request;
    check(gestalt_iget(client.handle(), "numbers", 7, back.data(), bytes, nullptr, request.place()));
    const gestalt_outcome outcome = request.wait();
    CHECK(outcome.len, bytes);
    CHECK_TRUE(back == numbers);
    try {
        check(gestalt_iget(client.handle(), "", 0, nullptr, 0, nullptr, Request().place()));
        CHECK_TRUE(!"a key has a length");
    } catch (const std::runtime_error &error) {
        CHECK_TRUE(std::string(error.what()).find("BadKey") == 0);
    }
    // A request in flight when its scope ends.
    Request abandoned;
    check(gestalt_iget(client.handle(), "numbers", 7, back.data(), bytes, nullptr, abandoned.place()));
    return 0;
}
