import java.io.FileInputStream;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Serves an Iceberg catalog over REST on one address.
 *
 * The server that comes in the jar listens on every interface and logs its properties, keys
 * included; this one does neither. Properties that begin with "hadoop." are Hadoop's. Arguments:
 * catalog name, properties file, host, port.
 */
public class CatalogServer {
  public static void main(String[] args) throws Exception {
    Properties file = new Properties();
    FileInputStream in = new FileInputStream(args[1]);
    try {
      file.load(in);
    } finally {
      in.close();
    }
    Map properties = new HashMap();
    Configuration hadoop = new Configuration();
    Iterator names = file.stringPropertyNames().iterator();
    while (names.hasNext()) {
      String name = (String) names.next();
      if (name.startsWith("hadoop.")) {
        hadoop.set(name.substring("hadoop.".length()), file.getProperty(name));
      } else {
        properties.put(name, file.getProperty(name));
      }
    }
    Catalog catalog = CatalogUtil.buildIcebergCatalog(args[0], properties, hadoop);
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress(args[2], Integer.parseInt(args[3])));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
