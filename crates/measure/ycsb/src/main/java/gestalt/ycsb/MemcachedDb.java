package gestalt.ycsb;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.transcoders.CachedData;
import net.rubyeye.xmemcached.transcoders.CompressionMode;
import net.rubyeye.xmemcached.transcoders.Transcoder;
import site.ycsb.DBException;

/** memcached's text protocol, through xmemcached: for each of YCSB's threads a client with one connection a host. */
public final class MemcachedDb extends RawValueDb {
  private static final Transcoder<byte[]> RAW = new Raw();
  private static final int NEVER = 0;
  private MemcachedClient client;

  @Override
  public void init() throws DBException {
    List<InetSocketAddress> hosts = Settings.hosts(getProperties());
    XMemcachedClientBuilder builder = new XMemcachedClientBuilder(hosts);
    builder.setOpTimeout(Settings.TIMEOUT_MS);
    builder.setSelectorPoolSize(1);
    builder.getConfiguration().setStatisticsServer(false);
    try {
      client = builder.build();
    } catch (IOException error) {
      throw new DBException(error);
    }
    // It is content with fewer hosts, or none, and would go on trying.
    if (client.getAvailableServers().size() < hosts.size()) {
      cleanup();
      throw new DBException("not all of " + hosts + " can be reached");
    }
    client.setEnableHeartBeat(false);
    // One operation at a time: there is nothing to merge.
    client.setOptimizeGet(false);
    client.setOptimizeMergeBuffer(false);
  }

  @Override
  public void cleanup() throws DBException {
    try {
      client.shutdown();
    } catch (IOException error) {
      throw new DBException(error);
    }
  }

  @Override
  byte[] get(String key) throws Exception {
    return client.get(key, Settings.TIMEOUT_MS, RAW);
  }

  @Override
  boolean set(String key, byte[] value) throws Exception {
    return client.set(key, NEVER, value, RAW, Settings.TIMEOUT_MS);
  }

  @Override
  boolean remove(String key) throws Exception {
    return client.delete(key);
  }

  /** Bytes as they are. */
  private static final class Raw implements Transcoder<byte[]> {
    @Override
    public CachedData encode(byte[] value) {
      return new CachedData(0, value);
    }

    @Override
    public byte[] decode(CachedData data) {
      return data.getData();
    }

    @Override
    public void setPrimitiveAsString(boolean primitiveAsString) {}

    @Override
    public void setPackZeros(boolean packZeros) {}

    @Override
    public void setCompressionThreshold(int bytes) {}

    @Override
    public boolean isPrimitiveAsString() {
      return false;
    }

    @Override
    public boolean isPackZeros() {
      return false;
    }

    @Override
    public void setCompressionMode(CompressionMode mode) {}
  }
}
