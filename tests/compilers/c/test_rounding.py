"""Which operations round by themselves, by the C compiler."""

from tests.compilers.test_rounding import (
    test_error_free_product_and_sum as test_error_free_product_and_sum,
)
from tests.compilers.test_rounding import (
    test_every_f16_operation_rounds as test_every_f16_operation_rounds,
)
from tests.compilers.test_rounding import (
    test_f16_is_not_f32_rounded_at_the_end as test_f16_is_not_f32_rounded_at_the_end,
)
from tests.compilers.test_rounding import test_f16_reductions as test_f16_reductions
from tests.compilers.test_rounding import (
    test_f16_sums_round_at_every_step as test_f16_sums_round_at_every_step,
)
from tests.compilers.test_rounding import test_fma_rounds_once as test_fma_rounds_once
from tests.compilers.test_rounding import test_nofma_rounds_twice as test_nofma_rounds_twice
from tests.compilers.test_rounding import (
    test_sums_of_unfused_products as test_sums_of_unfused_products,
)
from tests.compilers.test_rounding import (
    test_without_nofma_this_host_fuses as test_without_nofma_this_host_fuses,
)
