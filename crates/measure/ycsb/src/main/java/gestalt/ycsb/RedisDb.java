package gestalt.ycsb;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.DBException;

/**
 * RESP, through Jedis: for each of YCSB's threads a connection a host. With {@code wait=N} each SET goes out together with a
 * {@code WAIT N 0}, and is stored when so many replicas have it.
 */
public final class RedisDb extends RawValueDb {
  private final List<Jedis> connections = new ArrayList<>();
  private int replicas;

  @Override
  public void init() throws DBException {
    replicas = Integer.parseInt(getProperties().getProperty("wait", "0"));
    try {
      for (InetSocketAddress host : Settings.hosts(getProperties())) {
        Jedis connection = new Jedis(host.getHostString(), host.getPort(), Settings.TIMEOUT_MS);
        connection.connect();
        connections.add(connection);
      }
    } catch (JedisException error) {
      throw new DBException(error);
    }
  }

  @Override
  public void cleanup() {
    connections.forEach(Jedis::close);
  }

  @Override
  byte[] get(String key) {
    return connection(key).get(key.getBytes(UTF_8));
  }

  @Override
  boolean set(String key, byte[] value) {
    Jedis connection = connection(key);
    if (replicas == 0) {
      return "OK".equals(connection.set(key.getBytes(UTF_8), value));
    }
    Pipeline pipeline = connection.pipelined();
    Response<String> stored = pipeline.set(key.getBytes(UTF_8), value);
    Response<Long> copies = pipeline.waitReplicas(replicas, 0);
    pipeline.sync();
    return "OK".equals(stored.get()) && copies.get() >= replicas;
  }

  @Override
  boolean remove(String key) {
    return connection(key).del(key.getBytes(UTF_8)) == 1;
  }

  private Jedis connection(String key) {
    return connections.get(Math.floorMod(key.hashCode(), connections.size()));
  }
}
