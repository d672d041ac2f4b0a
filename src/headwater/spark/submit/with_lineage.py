"""What spark-submit starts; alone in its folder, which Python puts first on the path."""

from headwater.spark.driver.launcher import main

if __name__ == "__main__":
    main()
