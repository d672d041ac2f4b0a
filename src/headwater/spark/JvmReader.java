package headwater;

import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.ScalaReflection$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.TimestampType;
import scala.Option;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.Seq;

/**
 * Reads Spark's objects for Headwater inside the driver's JVM, in one call instead of many.
 *
 * Compiled in the driver by the Janino that Spark SQL brings along, which knows no generics and no
 * lambdas. Every call from Python costs both sides a tenth of a millisecond of CPU, and Spark's own
 * `toJSON` asks Scala's reflection for the names of each node's fields, which takes longer than
 * everything else about a short statement together.
 */
public class JvmReader {
    private static final int MAX_DEPTH = 1500;
    private final ConcurrentHashMap names = new ConcurrentHashMap();
    private final ConcurrentHashMap methods = new ConcurrentHashMap();
    private final ConcurrentHashMap types = new ConcurrentHashMap();
    private Method elementName;

    public JvmReader() {
        try {
            elementName = Product.class.getMethod("productElementName", new Class[] {int.class});
        } catch (NoSuchMethodException error) {
            elementName = null; // Scala 2.12
        }
    }

    /**
     * How many queries a plan has inside of its expressions, and in a second line the plan as its
     * `toJSON` has it, without what nothing reads; null for one of more nodes than the limit.
     */
    public String plan(TreeNode root, int limit) {
        StringBuilder out = new StringBuilder(8192);
        int[] left = new int[] {limit, 0};
        return tree(out, root, left) ? left[1] + "\n" + out : null;
    }

    /** What each path of methods leads to, as a JSON array of texts; null where one leads nowhere. */
    public String texts(Object target, String paths) {
        StringBuilder out = new StringBuilder(512);
        row(out, target, paths.split("\n"));
        return out.toString();
    }

    /** The same for each element of a sequence that a path leads to, up to a number of them. */
    private String rows(Object target, String path, int limit, String paths) {
        StringBuilder out = new StringBuilder(2048).append('[');
        Object found = follow(target, path);
        String[] asked = paths.split("\n");
        if (found instanceof Seq) {
            Iterator each = ((Seq) found).iterator();
            for (int place = 0; place < limit && each.hasNext(); place++) {
                if (place > 0) out.append(',');
                row(out, each.next(), asked);
            }
        }
        return out.append(']').toString();
    }

    /** Where Spark's own catalog puts a table that has no location of its own. */
    public String defaultLocation(Object session, String quoted) throws Exception {
        ParserInterface parser = (ParserInterface) follow(session, "sessionState.sqlParser");
        SessionCatalog catalog = (SessionCatalog) follow(session, "sessionState.catalog");
        return catalog.defaultTablePath(parser.parseTableIdentifier(quoted)).toString();
    }

    /**
     * What the plan of an execution has counted, as three JSON arrays: of its root, of the root's
     * children and of its leaves, each with what the paths lead to.
     */
    public String counts(Object execution, int limit, String written, String scanned) throws Exception {
        Object plan = executed(follow(execution, "executedPlan"));
        String children = rows(plan, "children", limit, written);
        String leaves = rows(plan, "collectLeaves", limit, scanned);
        return "[" + texts(plan, written) + "," + children + "," + leaves + "]";
    }

    /** The plan that really ran, below commands and adaptive execution. */
    private Object executed(Object given) throws Exception {
        Object plan = given;
        for (int depth = 0; depth < 6; depth++) {
            String name = String.valueOf(call(plan, "nodeName"));
            String step = null;
            if (name.equals("CommandResult")) step = "commandPhysicalPlan";
            if (name.startsWith("AdaptiveSparkPlan")) step = "executedPlan";
            if (name.startsWith("ResultQueryStage")) step = "plan"; // since 4.0, around the last stage
            if (step == null) return plan;
            plan = call(plan, step);
        }
        return plan;
    }

    private void row(StringBuilder out, Object target, String[] paths) {
        out.append('[');
        for (int place = 0; place < paths.length; place++) {
            if (place > 0) out.append(',');
            Object found = follow(target, paths[place]);
            if (found == null) {
                out.append("null");
            } else if (found.getClass().isArray()) {
                out.append('[');
                for (int at = 0; at < Array.getLength(found); at++) {
                    if (at > 0) out.append(',');
                    text(out, String.valueOf(Array.get(found, at)));
                }
                out.append(']');
            } else if (found instanceof Seq) {
                out.append('[');
                Iterator each = ((Seq) found).iterator();
                while (each.hasNext()) {
                    text(out, String.valueOf(each.next()));
                    if (each.hasNext()) out.append(',');
                }
                out.append(']');
            } else {
                text(out, String.valueOf(found));
            }
        }
        out.append(']');
    }

    private Object follow(Object target, String path) {
        Object found = held(target);
        String[] steps = path.split("\\.");
        for (int place = 0; place < steps.length && found != null; place++) {
            try {
                found = held(call(found, steps[place]));
            } catch (Exception error) {
                return null;
            }
        }
        return found;
    }

    /** A method without arguments, or with one number: `simpleString(1000)`. */
    private Object call(Object target, String step) throws Exception {
        int open = step.indexOf('(');
        String name = open < 0 ? step : step.substring(0, open);
        String key = target.getClass().getName() + " " + step;
        Object known = methods.get(key);
        if (known == null) {
            known = find(target.getClass(), name, open >= 0);
            methods.put(key, known);
        }
        if (!(known instanceof Method)) return null;
        Object[] given = new Object[0];
        if (open >= 0) given = new Object[] {Integer.valueOf(step.substring(open + 1, step.length() - 1))};
        return ((Method) known).invoke(target, given);
    }

    private static Object find(Class kind, String name, boolean number) {
        try {
            Method found = kind.getMethod(name, number ? new Class[] {int.class} : new Class[0]);
            try {
                found.setAccessible(true); // a public method of a class that is not
            } catch (RuntimeException error) {
                return found;
            }
            return found;
        } catch (NoSuchMethodException error) {
            return "";
        }
    }

    private static Object held(Object found) {
        if (!(found instanceof Option)) return found;
        return ((Option) found).isDefined() ? ((Option) found).get() : null;
    }

    private boolean tree(StringBuilder out, TreeNode root, int[] left) {
        out.append('[');
        boolean complete = node(out, root, left, 0);
        out.append(']');
        return complete;
    }

    private boolean node(StringBuilder out, TreeNode node, int[] left, int depth) {
        if (node instanceof QueryPlan && --left[0] < 0) return false;
        if (depth > MAX_DEPTH) return false;
        Seq children = node.children();
        if (out.charAt(out.length() - 1) != '[') out.append(',');
        out.append("{\"class\":\"").append(node.getClass().getName());
        out.append("\",\"num-children\":").append(children.size());
        if (!fields(out, node, children, left)) return false;
        out.append('}');
        Iterator each = children.iterator();
        while (each.hasNext()) {
            if (!node(out, (TreeNode) each.next(), left, depth + 1)) return false;
        }
        return true;
    }

    private boolean fields(StringBuilder out, TreeNode node, Seq children, int[] left) {
        if (node instanceof Literal) return literal(out, (Literal) node);
        Seq more = node.otherCopyArgs();
        String[] named = names(node, node.getClass(), more.size());
        int at = 0;
        Iterator each = ((Product) node).productIterator();
        while (at < named.length) {
            if (!each.hasNext()) {
                if (more == null) break;
                each = more.iterator();
                more = null;
                continue;
            }
            Object value = each.next();
            String name = named[at++];
            if (name.length() > 0 && !field(out, name, value, children, left)) return false;
        }
        return true;
    }

    private boolean field(StringBuilder out, String name, Object value, Seq children, int[] left) {
        int before = out.length();
        out.append(",\"").append(name).append("\":");
        int start = out.length();
        if (value instanceof TreeNode && place(children, value) >= 0) {
            out.append(place(children, value));
        } else if (value instanceof Seq && areChildren((Seq) value, children)) {
            out.append('[');
            Iterator each = ((Seq) value).iterator();
            while (each.hasNext()) {
                out.append(place(children, each.next()));
                if (each.hasNext()) out.append(',');
            }
            out.append(']');
        } else if (!value(out, value, left, name.equals("projections"))) {
            return false;
        }
        if (out.length() == start) out.setLength(before);
        return true;
    }

    /** Appends a value, or nothing where there is nothing to show. */
    private boolean value(StringBuilder out, Object given, int[] left, boolean nested) {
        Object value = held(given);
        if (value == null) return true;
        if (value instanceof Boolean || value instanceof Integer || value instanceof Long
                || value instanceof Short || value instanceof Byte) {
            out.append(value);
        } else if (value instanceof String || value instanceof Double || value instanceof Float) {
            text(out, value.toString());
        } else if (value instanceof DataType) {
            type(out, (DataType) value);
        } else if (value instanceof Metadata) {
            String shown = ((Metadata) value).json();
            if (shown.length() > 2) out.append(shown);
        } else if (value instanceof Class) {
            text(out, ((Class) value).getName());
        } else if (value instanceof TreeNode) {
            if (value instanceof QueryPlan) left[1]++;
            return tree(out, (TreeNode) value, left);
        } else if (value instanceof Seq) {
            return sequence(out, (Seq) value, left, nested);
        } else if (value instanceof CatalogTable) {
            table(out, (CatalogTable) value);
        } else if (value.getClass().getName().endsWith("$")) {
            out.append("{\"object\":\"").append(value.getClass().getName()).append("\"}");
        } else if (value instanceof ExprId || value instanceof StructField || value instanceof JoinType) {
            return product(out, (Product) value, left);
        }
        return true;
    }

    private boolean sequence(StringBuilder out, Seq given, int[] left, boolean nested) {
        Iterator each = given.iterator();
        boolean texts = !given.isEmpty() && given.head() instanceof String;
        if (texts) {
            text(out, given.mkString("[", ", ", "]"));
            return true;
        }
        int before = out.length();
        out.append('[');
        while (each.hasNext()) {
            Object one = each.next();
            boolean inner = one instanceof Seq;
            int start = out.length();
            if (inner && !nested) {
                out.setLength(before);
                return true;
            }
            if (!value(out, one, left, false)) return false;
            if (out.length() == start) out.append("null");
            if (each.hasNext()) out.append(',');
        }
        out.append(']');
        return true;
    }

    private boolean product(StringBuilder out, Product given, int[] left) {
        out.append("{\"product-class\":\"").append(given.getClass().getName()).append('"');
        String[] named = names(given, given.getClass(), 0);
        Iterator each = given.productIterator();
        for (int at = 0; at < named.length && each.hasNext(); at++) {
            Object value = each.next();
            int before = out.length();
            out.append(",\"").append(named[at]).append("\":");
            int start = out.length();
            if (!value(out, value, left, false)) return false;
            if (out.length() == start || named[at].length() == 0) out.setLength(before);
        }
        out.append('}');
        return true;
    }

    private boolean literal(StringBuilder out, Literal node) {
        Object value = node.value();
        if (value != null) {
            boolean shown = node.dataType() instanceof DateType || node.dataType() instanceof TimestampType;
            out.append(",\"value\":");
            text(out, shown ? node.toString() : value.toString());
        }
        out.append(",\"dataType\":");
        type(out, node.dataType());
        return true;
    }

    /** What names a table and where it lies, so that it need not be asked for one by one. */
    private void table(StringBuilder out, CatalogTable given) {
        out.append("{\"headwater_table\":");
        row(out, given, "identifier.quotedString\nprovider\ntableType.name\nstorage.locationUri".split("\n"));
        out.append('}');
    }

    private void type(StringBuilder out, DataType given) {
        String kind = given.getClass().getName();
        if (!kind.endsWith("$")) {
            out.append(given.json());
            return;
        }
        Object known = types.get(kind);
        if (known == null) {
            known = given.json();
            types.put(kind, known);
        }
        out.append(known);
    }

    /** The names of a constructor's parameters, empty for those that nothing reads. */
    private String[] names(Product given, Class kind, int more) {
        Object known = names.get(kind);
        if (known == null) {
            known = find(given, kind, more);
            names.put(kind, known);
        }
        return (String[]) known;
    }

    private String[] find(Product given, Class kind, int more) {
        String[] found = new String[given.productArity() + more];
        try {
            if (elementName == null || more > 0) throw new IllegalStateException();
            for (int at = 0; at < found.length; at++) {
                found[at] = (String) elementName.invoke(given, new Object[] {Integer.valueOf(at)});
            }
        } catch (Exception error) {
            Iterator each = ScalaReflection$.MODULE$.getConstructorParameterNames(kind).iterator();
            for (int at = 0; at < found.length; at++) {
                found[at] = each.hasNext() ? (String) each.next() : "";
            }
        }
        for (int at = 0; at < found.length; at++) {
            if (UNREAD.contains(" " + found[at] + " ")) found[at] = "";
        }
        return found;
    }

    private static final String UNREAD =
            " qualifier nullable nonInheritableMetadataKeys explicitMetadata jvmId origin hint ";

    private static int place(Seq children, Object wanted) {
        Iterator each = children.iterator();
        for (int at = 0; each.hasNext(); at++) {
            if (each.next() == wanted) return at;
        }
        return -1;
    }

    private static boolean areChildren(Seq given, Seq children) {
        Iterator each = given.iterator();
        while (each.hasNext()) {
            if (place(children, each.next()) < 0) return false;
        }
        return true;
    }

    private static void text(StringBuilder out, String given) {
        out.append('"');
        for (int at = 0; at < given.length(); at++) {
            char one = given.charAt(at);
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < ' ') {
                out.append(one < 16 ? "\\u000" : "\\u00").append(Integer.toHexString(one));
            } else {
                out.append(one);
            }
        }
        out.append('"');
    }
}
