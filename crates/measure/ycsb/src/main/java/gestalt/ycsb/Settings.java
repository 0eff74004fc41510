package gestalt.ycsb;

import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import site.ycsb.DBException;

/**
 * What both bindings are told: {@code hosts=host:port,…} and {@code any}.
 *
 * <p>With {@code any=true} every host has every key, and each connection gets one of them, in turn. Otherwise a key belongs
 * to one host.
 */
final class Settings {
  /** Milliseconds after which an operation has failed. */
  static final int TIMEOUT_MS = 10_000;
  private static final AtomicInteger CONNECTIONS = new AtomicInteger();

  private Settings() {}

  /** The hosts of the connection that is being made. */
  static List<InetSocketAddress> hosts(Properties properties) throws DBException {
    String text = properties.getProperty("hosts");
    if (text == null || text.isBlank()) {
      throw new DBException("-p hosts=HOST:PORT,… is missing");
    }
    List<InetSocketAddress> all = Arrays.stream(text.split(",")).map(Settings::address).toList();
    if (!Boolean.parseBoolean(properties.getProperty("any", "false"))) {
      return all;
    }
    return List.of(all.get(Math.floorMod(CONNECTIONS.getAndIncrement(), all.size())));
  }

  private static InetSocketAddress address(String text) {
    int colon = text.lastIndexOf(':');
    return new InetSocketAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }
}
