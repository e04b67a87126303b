"""Tuning constants of the solver, each with its unit and reason.

They trade time and memory for quality; no bound and no proof depends on them. Shares are of the
time that is left when something begins.
"""

# Scheduler and state

RESERVE_SHARE = 0.1
"""Of the time limit, for judging the winner again."""
RESERVE_SECONDS = 2.0
"""The reserve is at most so long: a thousand episodes rarely take more."""
ENDING_SECONDS = 0.25
"""That an engine beside the others has to end by itself; what it finds then comes too late."""
VISITING_EPISODES = 400
"""Of each policy, whose states join the pools of fits."""
FRESH_EPISODES = 1000
"""Of the incumbent, to judge it once more: its standard error is 3 % of a return's deviation."""
FILED_STATES = 2**23
"""States, of all of a model, whose values a plan file and its checker take."""
FILED_NUMBERS = 2**26
"""Values of variables of listed states that a plan file and its checker take."""

# Judging policies by simulation

CHUNK_EPISODES = 50
"""Episodes that share a generator: few enough that time limits are noticed between them."""
CHUNKS_TOGETHER = 8
"""Chunks of short episodes that one call of compiled code runs, if there are many."""
STUCK_EPISODES = 50
"""Episodes at random in which states that allow no action are looked for before planning."""

STUCK_STEPS = 100
"""Steps of each of them, at most."""

STUCK_WORK = 10**4
"""Additions of a decision up to which they are played: they are to take no time."""

ADDITIONS_PER_DRAW = 8
"""Of an elimination that finds a joint action: about so many take as long as a random draw."""

DRAWS_BETWEEN_CHECKS = 5_000_000
"""Variables drawn between two checks of the clock: some hundredths of a second, roughly."""
RECORDED_NUMBERS = 2**24
"""Values of variables of states that are recorded at a time: 64 MiB."""
JUDGING_SHARE = 0.5
"""Of the time that is left, for one candidate once there is an incumbent: others wait."""
SCREENING_EPISODES = 200
"""After which a candidate that is clearly behind is given up."""
COMPARING_EPISODES = 1000
"""On which a candidate must be ahead to become the incumbent."""
SCREENING_ERRORS = 2.0
"""Standard errors of the paired difference by which a candidate may be behind after screening."""

# Policies that the caller has

TABULATED_DECISIONS = 2**20
"""Calls of a function that the caller gives as a policy: some seconds."""

# Baselines

LONG_EPISODE_STEPS = 2000
"""Beyond which baselines are simulated after exact values were tried."""

# Exact values

QUICK_EXACT_SECONDS = 2.0
"""That exact values of all states may be expected to take to be tried before anything else."""
REACHABLE_SHARE = 0.1
"""For states that can be reached, which may turn out to be too many."""
EXACT_SHARE = 0.9
"""For all states: begun at once if they are expected within it."""
AWAITED_SHARE = 0.4
"""If they are expected within this share, other engines wait for them; otherwise not."""
WAITING_SHARE = 0.7
"""That other engines wait at most."""
DOUBT = 3.0
"""Estimates of seconds are right up to this factor, most often."""
EXACT_SECONDS = 600.0
"""Without a time limit, all states are tried if they are expected within these."""

# Fits

SINGLES_ROUNDS = 2
"""Fits of singles: policies within seconds."""
PAIRS_ROUNDS = 4
"""Fits of pairs: policies rarely improve after more."""
GROWN_ROUNDS = 2
"""Fits of each basis that has grown."""
GROWTH_PATIENCE = 3
"""Times that a basis may grow without a better policy before it is given up."""
GROWTH_DIVISOR = 3
"""A basis grows by one function for so many that it has."""
LEAST_GROWTH = 20
"""Functions that a basis grows by at least."""
IDLE_DIVISOR = 4
"""Doing nothing visits few states: one of so many episodes suffices."""
RIDGE = 1e-3
"""Of least squares, relative to the number of states: draws to the following step's weights."""
CONSTANT_RIDGE = 1e-3
"""The constant is drawn to the targets' mean by so much less than the others to 0."""
POOL_STATES = 20_000
"""States of a step that a pool keeps, the ones visited most often."""
SORTED_NUMBERS = 2**20
"""Values of variables in the states that are sorted at a time, between checks of the clock."""
THREAD_STATES = 256
"""States below which a thread more does not pay."""
SCOPE_VARIABLES = 4
"""Variables of a scope: the number of scopes, and of functions of each, grows quickly."""
CANDIDATE_SCOPES = 2000
"""Scopes that are scored before some are chosen."""
DOUBTFUL_STATES = 5.0
"""So many states' worth of doubt that a difference between assignments is more than chance."""
FIT_BACKUP_NUMBERS = 2**16
"""Numbers in the tables of one function's expectations; scopes with more are left out."""
FIT_NUMBERS = 2**26
"""Numbers in the tables of all functions, over all steps: 512 MiB."""
MERGED_TABLES = 4
"""Tables turn out smaller than declared, most often by more than this factor: parents on which
nothing depends are left out, and equal tables of several actions are one."""
FIT_FUNCTIONS = 2000
"""The cube of these is the cost of a step."""
RESIDUAL_STEPS = 8
"""Steps whose residuals are explained when a basis grows."""
SETTLED_SHARE = 0.02
"""With an infinite horizon, stages are run until the rest counts for this fraction of a return."""
FIRST_STAGES = 200
"""Stages of a first fit, at most, with an infinite horizon."""
MORE_STAGES = 20
"""Stages of a later fit, which begins with the weights of the last one."""

# Projections

PROJECTION_SHARE = 0.1
"""For the projections of a model."""
PROJECTION_NUMBERS = 2**20
"""Numbers that the exact solution of one projection may hold."""
PROJECTED_TERMS = 24
"""Reward terms that have a projection of their own, those that vary most."""
PROJECTED_VARIABLES = 32
"""That the projection for one term is tried with first; halved until it is small."""
REGRESSED_STATES = 2**11
"""States, drawn at random from those that can be reached, that functions are fitted to."""
PROJECTION_RIDGE = 1e-6
"""Of that regression, relative to the mean square of the functions: only against ties."""
PROJECTED_FUNCTION_ENTRIES = 2**10
"""A projection's values become functions of a basis if their table is no larger."""
PROJECTED_FUNCTION_STEPS = 4
"""Steps whose values become functions."""

# Linear programs

UNTIMED_TURNS = 2
"""Without a time limit: one for programs of singles, one for pairs."""
UNTIMED_REFINEMENTS = 2
"""Times that the tightest bound is refined in a turn, without a time limit."""
FIRST_PROGRAM_SHARE = 0.6
"""For the first program, without which there is no bound worth reading."""
PROGRAM_SHARE = 0.3
"""For each other program before bases grow."""
REGION_SHARE = 0.1
"""For the program of a region."""
STAGES_SHARE = 0.6
"""Of the time for a program, to solve it by rows: stage by stage, and of the rest all in one."""
JOINT_TO_STAGES = 3.0
"""All steps in one take about so much longer than stages."""
INVARIANTS_SHARE = 0.2
"""Of the time for a program, to prove invariants of its model."""
FLAT_BOUND = 1e-9
"""A bound that is below the trivial one by less, in largest returns, says no more."""
EXACT_ENTRIES = 2**20
"""Table entries of one step, up to which elimination is exact; beyond, mini-buckets keep to it."""
REGION_ASSIGNMENTS = 2**8
"""Assignments of a region, and so its functions."""
REGIONS = 64
"""Sets of variables that regions are made of."""
INVARIANT_EPISODES = 200
"""At random, and as many of doing nothing: what they visit need not be proved impossible."""
INVARIANT_NUMBERS = 2**22
"""Values of variables of all states that are visited: episodes are fewer where they are long."""
INVARIANT_TABLES = 4000
"""Tables that may be invariants: of single variables first, then of pairs."""
SUM_VARIABLES = 40
"""Variables that are counted together."""
SUM_FAMILIES = 8
"""Families of variables of which two are counted together."""

# Techniques that tighten a bound

BOUND_BACKUP_NUMBERS = 2**12
"""Numbers in the backups of a function, which elimination multiplies with others."""
BOUND_CANDIDATES = 400
"""Scopes whose functions are scored in a round."""
BOUND_GROWTH_DIVISOR = 3
"""A basis grows by one function for so many that it has."""
BOUND_LEAST_GROWTH = 3
"""Functions that a basis grows by at least."""
REGION_ADDITIONS = 4e8
"""Of one evaluation of all regions, a third of a second: they grow no further, so that the
subgradient steps stay many."""
UNTIMED_REGION_ADDITIONS = 3e6
"""Of one evaluation without a time limit, where nobody has said how long it may take."""
UNTIMED_REGION_STEPS = 60
"""Subgradient steps of a phase without a time limit."""
UNTIMED_REGION_PHASES = 2
"""Phases of subgradient steps without a time limit: about a second."""
BOUND_ACCURACY = 1e-2
"""A program is solved until what it can still gain is less than this share of the gap."""
USELESS_WEIGHT = 1e-9
"""A function whose weights are all smaller, times its size in rewards, is dropped."""
BOUND_PATIENCE = 4
"""Times that a basis may grow, ever faster, without a tighter bound before it is given up."""
BOUND_FALL = 1e-5
"""A bound that falls by less, relative to itself, has not."""
ROUNDED_SLOPE = 1e-7
"""A slope smaller than this, in values of the constant at every step, is rounding."""
WIDENED_ENTRIES = 2**23
"""Table entries of a step up to which mini-buckets are widened."""

# Search from the start

TRIVIAL_SEARCH_SHARE = 0.2
"""For the search below the trivial bound, which leads astray where it says nothing."""
SEARCH_SHARE = 0.5
"""For the search below the tightest bound."""
SEARCH_TRIALS = 10**5
"""Without a time limit."""
SEARCH_BYTES = 2**30
"""Memory of a search unless it is given another limit."""
SEARCH_STARTS = 10**4
"""States at which an episode may begin."""
MEAN_SUCCESSORS = 64.0
"""Of an action, on average, up to which states are searched."""
LISTED_SUCCESSORS = 2**12
"""Combinations of outcomes of an action that are listed; more are not for a search."""
BRANCHING_STATES = 400
"""Whose successors are counted beforehand."""
BRANCHING_STEPS = 20
"""Of each walk on which they are counted."""
GUARDS = 8
"""Variables whose values make others irrelevant."""
TRAPS = 8
"""States at which traps are looked for: the last ones of walks."""
GUARD_NUMBERS = 2**28
"""Of tables that are read to find guards."""
RELEVANCE_SAMPLES = 256
"""States of any values, and as many on walks, by which relevance is judged."""
RELEVANCE_STEPS = 32
"""Of each of these walks."""
TRIAL_EFFORT = 2**18
"""Entries that backups go through between two checks of the clock."""
SWEEP_EVERY = 2
"""Trials go through so many times the entries of a sweep before the next."""
TRIAL_STEPS = 10**5
"""Of a trial, at most, with an infinite horizon."""
TRIAL_GAP_FACTOR = 10.0
"""A trial ends where the gap is smaller than that of the start by this factor."""
LATE_TRIAL_GAP_FACTOR = 100.0
"""The same for trials that complete the policy so far."""
IDLE_TRIALS = 16
"""Of a kind without success, after which it is paused, for twice as long each time."""
SUCCESSOR_COST = 16
"""To list a successor, and find its bounds, takes so much longer than to back it up."""
POLICY_ENTRY_SECONDS = 4e-7
"""To write an entry of a policy down."""
FAR_APART_SHARE = 0.25
"""Of the distance of the trivial bounds: if bounds are farther apart, the policy of the upper ones
is a candidate, too."""
