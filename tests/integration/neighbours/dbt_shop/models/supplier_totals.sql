{{ config(materialized="table") }}
select supplier, sum(price) as total
from {{ source("shop", "orders") }}
group by supplier
