package gestalt.ycsb;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/** A store of plain values: a record's only field is its value, byte for byte. */
abstract class RawValueDb extends DB {
  /** As YCSB's workloads call the first field. */
  private static final String FIELD = "field0";

  /** The value of {@code key}; null if there is none. */
  abstract byte[] get(String key) throws Exception;

  /** Gives {@code key} this value, and returns when it is stored; false if it is not. */
  abstract boolean set(String key, byte[] value) throws Exception;

  /** Removes {@code key}; false if it was not there. */
  abstract boolean remove(String key) throws Exception;

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      byte[] value = get(key);
      if (value == null) {
        return Status.NOT_FOUND;
      }
      result.put(FIELD, new ByteArrayByteIterator(value));
      return Status.OK;
    } catch (Exception error) {
      return failed(error);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    if (values.size() != 1) {
      return new Status("FIELDS", "a record has one field here: -p fieldcount=1");
    }
    try {
      return set(key, values.values().iterator().next().toArray()) ? Status.OK : Status.ERROR;
    } catch (Exception error) {
      return failed(error);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return insert(table, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    try {
      return remove(key) ? Status.OK : Status.NOT_FOUND;
    } catch (Exception error) {
      return failed(error);
    }
  }

  @Override
  public Status scan(
      String table, String key, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  /** The name goes into YCSB's counts of what was returned, the text to whoever reads the errors. */
  private static Status failed(Exception error) {
    System.err.println("failed: " + error);
    return new Status(error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
  }
}
