"""Which of Spark's expressions behave alike, by the name of their class."""

from __future__ import annotations

TRANSPARENT = (
    "Alias",
    "SortOrder",
    "KnownNullable",
    "KnownNotNull",
    "KnownNotContainsNull",
    "KnownFloatingPointNormalized",
    "NormalizeNaNAndZero",
    "AssertNotNull",
    "CheckOverflowInTableInsert",
    "TempResolvedColumn",
    "Collate",
    "Empty2Null",
    "OuterScopeAttribute",
    "UnresolvedNamedLambdaVariable",
)
"""What hands a value on as it is."""

PLAIN = ("NullIf", "NullIfZero", "ZeroIfNull", "PreciseTimestampConversion", "IfNull")
"""What Spark spells out with conditions, though a reader sees one function of a column."""

WHOLE = (
    "AttributeReference",
    "OuterReference",
    "NamedLambdaVariable",
    "AggregateExpression",
    "WindowExpression",
    "ScalarSubquery",
)
"""Where columns come into such a function: what an aggregate or a query makes of them stays."""

MASKS = (
    "Md5",
    "Sha1",
    "Sha2",
    "Crc32",
    "Murmur3Hash",
    "XxHash64",
    "HiveHash",
    "CollationAwareMurmur3Hash",
    "CollationAwareXxHash64",
    "Mask",
    "AesEncrypt",
)
"""What hides a value: nobody can read the column from what comes out."""

KEPT = (
    "SortArray",
    "ArraySort",
    "ArrayDistinct",
    "ArrayCompact",
    "ArrayRemove",
    "Slice",
    "Shuffle",
    "Reverse",
    "MapConcat",
    "Coalesce",
    "Least",
    "Greatest",
)
"""What changes which elements there are, not what they look like inside."""

RANKS = ("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile")
"""Window functions whose arguments are the window's own order."""

AGGREGATES = (
    "Max",
    "Min",
    "First",
    "Last",
    "AnyValue",
    "Mode",
    "CollectList",
    "CollectSet",
    "CollectTopK",
    "Count",
    "HyperLogLogPlusPlus",
    "MaxBy",
    "MinBy",
    "ListAgg",
    "PivotFirst",
)
"""Aggregate functions with a rule of their own."""

WRITE_SIDE = ("varcharTypeWriteSideCheck", "charTypeWriteSideCheck", "readSidePadding")
"""What Spark calls by itself where a column has a length."""
