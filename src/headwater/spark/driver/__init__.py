"""The driver's side of a PySpark program: attaching to it, its application, and its JVM."""
