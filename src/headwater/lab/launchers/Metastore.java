import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/**
 * Serves a Hive metastore on one address; Hive's own main class listens on every interface.
 *
 * Settings come from hive-site.xml on the class path. Arguments: host, port.
 */
public class Metastore {
  public static void main(String[] args) throws Exception {
    ThriftHiveMetastore.Iface handler =
        HiveMetaStore.newRetryingHMSHandler("headwater lab", new HiveConf(), false);
    InetSocketAddress address = new InetSocketAddress(args[0], Integer.parseInt(args[1]));
    TThreadPoolServer.Args options = new TThreadPoolServer.Args(new TServerSocket(address));
    options.processor(new TSetIpAddressProcessor(handler));
    options.transportFactory(new TTransportFactory());
    options.protocolFactory(new TBinaryProtocol.Factory());
    options.minWorkerThreads(2);
    options.maxWorkerThreads(50);
    new TThreadPoolServer(options).serve();
  }
}
