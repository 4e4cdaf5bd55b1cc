"""In which order the rules see a node.

The pass (`engine.py`) works from the inside out and offers each node to every rule that has a handler for its kind, in this order. A call
that one rule has replaced, or a node that has become one of another kind, is not offered to the rules after it (except to their `CHECKS`);
otherwise each rule goes on with what the one before it made. So a rule stands before another where it must win over it, and after it where
it needs its result or its hole. The order decides only about one and the same node: what is inside has always been through all rules before.
Rules that share no handler may stand in any order.
"""

from __future__ import annotations

from migrate_agent.tools.rewrite.rules.calls.array_reductions import ReduceArrays
from migrate_agent.tools.rewrite.rules.calls.attribute_tests import AskForParameters, DropLookedUpPlaces
from migrate_agent.tools.rewrite.rules.calls.chosen_modules import SwitchModules
from migrate_agent.tools.rewrite.rules.calls.constructor_selection import SelectWhileConstructing
from migrate_agent.tools.rewrite.rules.calls.distribution_draws import DrawFromDistributions
from migrate_agent.tools.rewrite.rules.calls.dtype_comparisons import CompareDtypesByValue
from migrate_agent.tools.rewrite.rules.calls.dtype_limits import KeepLimitsAsNumbers
from migrate_agent.tools.rewrite.rules.calls.evaluated_attributes import LookUpAttributes
from migrate_agent.tools.rewrite.rules.calls.forks import CallForks
from migrate_agent.tools.rewrite.rules.calls.handed_functions import RenameHandedOptions
from migrate_agent.tools.rewrite.rules.calls.host_draws import DrawOnDevice
from migrate_agent.tools.rewrite.rules.calls.map_calls import MapWithRngs
from migrate_agent.tools.rewrite.rules.calls.memory import CompareMemory
from migrate_agent.tools.rewrite.rules.calls.name_lookups import ReplaceLookups
from migrate_agent.tools.rewrite.rules.calls.packed_lengths import KeepLengthsInArrays
from migrate_agent.tools.rewrite.rules.calls.partials import BindTorchFunctions
from migrate_agent.tools.rewrite.rules.calls.pointers import WriteAtPointers
from migrate_agent.tools.rewrite.rules.calls.present_names import UsePresentNames
from migrate_agent.tools.rewrite.rules.calls.seeded_generators import SeedGenerators
from migrate_agent.tools.rewrite.rules.calls.size_tensors import KeepSizesInNumpy
from migrate_agent.tools.rewrite.rules.calls.static_arrays import KeepArraysStatic
from migrate_agent.tools.rewrite.rules.calls.static_ranges import KeepRangesStatic
from migrate_agent.tools.rewrite.rules.calls.tensor_attributes import ReplaceTensorAttributes
from migrate_agent.tools.rewrite.rules.calls.torch_calls import ReplaceTorchCalls
from migrate_agent.tools.rewrite.rules.calls.torch_references import ReplaceTorchReferences
from migrate_agent.tools.rewrite.rules.calls.traced_integers import KeepTracedIntegers
from migrate_agent.tools.rewrite.rules.calls.type_names import CompareDtypes, CompareTypesOfTensors
from migrate_agent.tools.rewrite.rules.classes.base_calls import CallBasesByName
from migrate_agent.tools.rewrite.rules.classes.class_names import AskForClasses
from migrate_agent.tools.rewrite.rules.classes.class_surgery import RefuseClassSurgery
from migrate_agent.tools.rewrite.rules.classes.isinstance_tests import ExtendIsinstanceTests
from migrate_agent.tools.rewrite.rules.classes.kept_methods import UnbindKeptMethods
from migrate_agent.tools.rewrite.rules.classes.layer_stacks import StackLayers
from migrate_agent.tools.rewrite.rules.classes.module_methods import ReplaceModuleMethods
from migrate_agent.tools.rewrite.rules.classes.modules import ConvertMethods, ConvertModuleClass, GiveLambdasRngs
from migrate_agent.tools.rewrite.rules.classes.ordered_children import KeepChildrenInOrder
from migrate_agent.tools.rewrite.rules.classes.output_classes import RegisterOutputClasses
from migrate_agent.tools.rewrite.rules.classes.overloads import DropOverloads
from migrate_agent.tools.rewrite.rules.classes.own_seeds import SeedRngs
from migrate_agent.tools.rewrite.rules.classes.own_train import DeriveFromOwnTrain
from migrate_agent.tools.rewrite.rules.classes.seed_helpers import SeedRngsByHelpers
from migrate_agent.tools.rewrite.rules.classes.sequences import JoinModuleLists
from migrate_agent.tools.rewrite.rules.classes.signatures import ReplaceSignatureCalls
from migrate_agent.tools.rewrite.rules.classes.training_flag import ReplaceTrainingFlag
from migrate_agent.tools.rewrite.rules.cleanup.blank_lines import TidyBlocks
from migrate_agent.tools.rewrite.rules.cleanup.foreign_imports import RefuseAbsentNames, RefuseForeignImports
from migrate_agent.tools.rewrite.rules.cleanup.late_defaults import EvaluateDefaultsLate
from migrate_agent.tools.rewrite.rules.cleanup.self_assignments import DropSelfAssignments
from migrate_agent.tools.rewrite.rules.cleanup.torch_imports import DropTorchImports
from migrate_agent.tools.rewrite.rules.cleanup.uncertain_kinds import RefuseUncertainKinds
from migrate_agent.tools.rewrite.rules.cleanup.undefined_names import RefuseUndefinedNames
from migrate_agent.tools.rewrite.rules.cleanup.unexercised import StubUnexercised
from migrate_agent.tools.rewrite.rules.cleanup.unmigrated_references import StubUnmigratedReferences
from migrate_agent.tools.rewrite.rules.cleanup.unused_locals import DropUnusedLocals
from migrate_agent.tools.rewrite.rules.control_flow.asserts import WriteAsserts
from migrate_agent.tools.rewrite.rules.control_flow.computed_numbers import ComputeWithArrays
from migrate_agent.tools.rewrite.rules.control_flow.constants import DecideConstants
from migrate_agent.tools.rewrite.rules.control_flow.growing_loops import GrowInBuffers
from migrate_agent.tools.rewrite.rules.control_flow.handed_back import HandBackNumbers
from migrate_agent.tools.rewrite.rules.control_flow.idle_masks import KeepIdleMasks
from migrate_agent.tools.rewrite.rules.control_flow.loop_exits import ReplaceLoopExits
from migrate_agent.tools.rewrite.rules.control_flow.prints import DropPrintsOfValues
from migrate_agent.tools.rewrite.rules.control_flow.selected_means import ReduceInBranches
from migrate_agent.tools.rewrite.rules.control_flow.sunk_values import SinkIntoBranches
from migrate_agent.tools.rewrite.rules.control_flow.tensor_branches import (
    ReplaceBranchChains,
    ReplaceEarlyReturns,
    ReplaceTensorBranches,
    ReplaceTensorLoops,
)
from migrate_agent.tools.rewrite.rules.environment.custom_kernels import ReplaceKernelLaunches
from migrate_agent.tools.rewrite.rules.environment.devices import DropDevicePlumbing
from migrate_agent.tools.rewrite.rules.environment.downloaded_weights import LeaveDownloadsOut
from migrate_agent.tools.rewrite.rules.environment.fused_imports import TakeFusedKernels
from migrate_agent.tools.rewrite.rules.environment.gathered_values import KeepGatheredValues
from migrate_agent.tools.rewrite.rules.environment.global_names import SpellOutGlobals
from migrate_agent.tools.rewrite.rules.environment.gradient_contexts import ReplaceGradientContexts
from migrate_agent.tools.rewrite.rules.environment.idle_calls import DropIdleCalls
from migrate_agent.tools.rewrite.rules.environment.import_fallbacks import TakeImportFallbacks
from migrate_agent.tools.rewrite.rules.environment.input_gradients import DifferentiateInputs
from migrate_agent.tools.rewrite.rules.environment.large_factors import ScaleByLargeNumbers
from migrate_agent.tools.rewrite.rules.environment.local_names import WriteOutLocals
from migrate_agent.tools.rewrite.rules.environment.outside_access import RefuseOutsideAccess
from migrate_agent.tools.rewrite.rules.environment.own_optimizers import LeaveOptimizersOut
from migrate_agent.tools.rewrite.rules.environment.patched_names import NamePatches
from migrate_agent.tools.rewrite.rules.environment.recompute import DeriveFromModuleFunction, KeepRandomStates, ReplaceManualBackward
from migrate_agent.tools.rewrite.rules.environment.recomputed_functions import CheckpointRecomputedFunctions
from migrate_agent.tools.rewrite.rules.environment.renewed_names import RenewNames
from migrate_agent.tools.rewrite.rules.environment.repository_imports import RenameRepositoryImports
from migrate_agent.tools.rewrite.rules.environment.small_terms import KeepSmallTerms
from migrate_agent.tools.rewrite.rules.environment.sparse_products import DeriveSparseProducts
from migrate_agent.tools.rewrite.rules.environment.unfollowed_packages import RefuseUnfollowedPackages
from migrate_agent.tools.rewrite.rules.environment.unpacked_devices import DropUnpackedDevices
from migrate_agent.tools.rewrite.rules.indexing.constructed_masks import KeepMasksStatic
from migrate_agent.tools.rewrite.rules.indexing.cuts import CutAtPlaces
from migrate_agent.tools.rewrite.rules.indexing.filled_rows import FillRowsByMask
from migrate_agent.tools.rewrite.rules.indexing.known_masks import ComputeMasksAtOnce
from migrate_agent.tools.rewrite.rules.indexing.known_numbers import ReadKnownNumbers
from migrate_agent.tools.rewrite.rules.indexing.list_indices import IndexByArrays
from migrate_agent.tools.rewrite.rules.indexing.masks import CloseMaskedWrites, ReduceMaskedParts
from migrate_agent.tools.rewrite.rules.indexing.packed_parts import NamePackedParts
from migrate_agent.tools.rewrite.rules.indexing.padded_places import PadPlaces
from migrate_agent.tools.rewrite.rules.indexing.padded_rows import ComputeWithoutAsking, NameMasks
from migrate_agent.tools.rewrite.rules.indexing.places_alone import TakePartsAlone
from migrate_agent.tools.rewrite.rules.indexing.routed_rows import WeighAllRows
from migrate_agent.tools.rewrite.rules.indexing.rows_by_mask import SelectRowsByMask
from migrate_agent.tools.rewrite.rules.indexing.windows import GatherWindows
from migrate_agent.tools.rewrite.rules.mutation.buffer_arguments import TakeBuffers
from migrate_agent.tools.rewrite.rules.mutation.changed_arguments import RebindChangedArguments
from migrate_agent.tools.rewrite.rules.mutation.counters import CountInVariables
from migrate_agent.tools.rewrite.rules.mutation.gradients import KeepParameterGradients
from migrate_agent.tools.rewrite.rules.mutation.inplace import ReplaceInplaceUpdates
from migrate_agent.tools.rewrite.rules.mutation.intermediates import StoreIntermediates
from migrate_agent.tools.rewrite.rules.mutation.loop_slices import CollectLoopSlices
from migrate_agent.tools.rewrite.rules.mutation.memos import RecomputeMemos, UncacheArrays
from migrate_agent.tools.rewrite.rules.mutation.outer_names import BindOuterNames
from migrate_agent.tools.rewrite.rules.mutation.returned_arguments import ReturnChangedArguments
from migrate_agent.tools.rewrite.rules.mutation.saved_for_backward import ReadSavedTensors, SaveForBackwardLast
from migrate_agent.tools.rewrite.rules.parameters.buffers import SetBuffers
from migrate_agent.tools.rewrite.rules.parameters.constructed_values import InitialiseWhereMade
from migrate_agent.tools.rewrite.rules.parameters.containers_of_arrays import WrapContainersOfArrays
from migrate_agent.tools.rewrite.rules.parameters.freezing import FreezeParameters
from migrate_agent.tools.rewrite.rules.parameters.initialisers import ReplaceInitialisers
from migrate_agent.tools.rewrite.rules.parameters.interim_containers import BuildContainersInLocals
from migrate_agent.tools.rewrite.rules.parameters.late_attributes import MarkLateAttributes
from migrate_agent.tools.rewrite.rules.parameters.layer_walks import GoThroughModules
from migrate_agent.tools.rewrite.rules.parameters.made_values import GiveValuesWhereMade
from migrate_agent.tools.rewrite.rules.parameters.named_layers import ChooseLayersByName
from migrate_agent.tools.rewrite.rules.parameters.passed_variables import PassVariables
from migrate_agent.tools.rewrite.rules.parameters.registration import RegisterSequentialParts, ReplaceRegistrations
from migrate_agent.tools.rewrite.rules.parameters.registries import ReplaceModuleRegistries
from migrate_agent.tools.rewrite.rules.parameters.removed_parameters import ComputeRemovedParameters
from migrate_agent.tools.rewrite.rules.parameters.replaced_children import ReplaceChildren
from migrate_agent.tools.rewrite.rules.parameters.resets import CallResets
from migrate_agent.tools.rewrite.rules.parameters.running_statistics import MoveInheritedStatistics, MoveListedStatistics
from migrate_agent.tools.rewrite.rules.parameters.sequential_parts import OpenSequences
from migrate_agent.tools.rewrite.rules.parameters.shared_variables import ShareVariables
from migrate_agent.tools.rewrite.rules.parameters.state_loops import WalkState
from migrate_agent.tools.rewrite.rules.parameters.taken_names import RenameTakenAttributes
from migrate_agent.tools.rewrite.rules.parameters.tensor_marks import DropTensorMarks, KeepMarksOnModules
from migrate_agent.tools.rewrite.rules.parameters.tied_heads import AttendToTables
from migrate_agent.tools.rewrite.rules.parameters.unregistered_modules import WrapUnregisteredModules
from migrate_agent.tools.rewrite.rules.parameters.variables import MakeParameters, ReadVariables
from migrate_agent.tools.rewrite.rules.rule import Rule

# First of all what is not itself in the mirror: another name, a local variable, a function of another signature. All later rules build on
# the node that these leave, and must not take an attribute for a variable that is none any more.
IDENTITY: tuple[type[Rule], ...] = (
    RenameTakenAttributes,  # keeps an attribute an attribute, so every rule below still sees it, under its new name
    RecomputeMemos,
    BuildContainersInLocals,
    UnbindKeptMethods,
    ReplaceKernelLaunches,  # `Silu.apply(x)` becomes a call of the plain function before anything else sees it
    LeaveDownloadsOut,  # what goes with a download no rule below has to rewrite
    ReplaceManualBackward,  # else `ReplaceGradientContexts` drops `enable_grad`, and `ReplaceTensorAttributes` refuses `x.grad`
)

# Calls that depend on more than their own arguments: on who calls, where, and what becomes of the result. The tables below have a row or a
# hole for every name of torch, and what they replace no later rule sees. So these come before.
CALLS_IN_CONTEXT: tuple[type[Rule], ...] = (
    BindTorchFunctions,
    DrawOnDevice,  # else the rules for tensors would take `int(r)` of a random number, and refuse it
    DrawFromDistributions,
    SeedGenerators,
    MakeParameters,
    ReplaceInitialisers,
    ReplaceRegistrations,
    ReplaceChildren,
    WriteAsserts,
    DropIdleCalls,
    SeedRngs,
    SeedRngsByHelpers,
    LeaveOptimizersOut,
    KeepGatheredValues,
    KeepRandomStates,
    CallForks,
    MapWithRngs,
    MoveInheritedStatistics,
    MoveListedStatistics,
    CallResets,
    FreezeParameters,
    CallBasesByName,
    KeepTracedIntegers,
    KeepSizesInNumpy,
    KeepLimitsAsNumbers,
    HandBackNumbers,
    KeepLengthsInArrays,
    WriteAtPointers,
    SwitchModules,
    ReduceArrays,
    SelectWhileConstructing,
    ShareVariables,
    AttendToTables,
    OpenSequences,
    StackLayers,
    AskForClasses,
    ChooseLayersByName,
    WalkState,
    GoThroughModules,
    KeepRangesStatic,
    ReadKnownNumbers,  # a range that Python may count is no tensor at all
    ComputeWithArrays,  # what a rule above takes is a number, or no longer there
    PassVariables,
    WeighAllRows,  # else the rules below would give each slot a row of its own
    ReduceMaskedParts,
    LookUpAttributes,
    ReplaceLookups,
    NameMasks,
    SelectRowsByMask,
    FillRowsByMask,
    PadPlaces,  # takes what the rules above decline
    GatherWindows,
    CutAtPlaces,
    KeepSmallTerms,
    ScaleByLargeNumbers,
)

# Then the tables: everything of torch that is left, by its name alone.
TABLES: tuple[type[Rule], ...] = (
    NamePatches,
    RenewNames,
    RenameHandedOptions,
    ReplaceSignatureCalls,
    ReplaceGradientContexts,
    CompareMemory,
    CompareDtypes,
    CompareDtypesByValue,
    CompareTypesOfTensors,
    AskForParameters,
    DropLookedUpPlaces,
    ReplaceTorchCalls,
    ReplaceTorchReferences,
    ExtendIsinstanceTests,
    RefuseUnfollowedPackages,  # a fused package cannot be followed either, but the tables may know what is named: they come first
    ReplaceModuleMethods,  # `x.to(…)` of a tensor is replaced by now; what is left may be that of a module
    SpellOutGlobals,
    ReplaceModuleRegistries,
    ComputeRemovedParameters,
    DropDevicePlumbing,
)

# Attributes of modules and tensors: which of them are variables, data or static in NNX. The reads that want the variable itself are taken
# above (`PassVariables`, `ShareVariables`, `FreezeParameters`); `ReadVariables` gives all others their `[...]`.
STATE: tuple[type[Rule], ...] = (
    MarkLateAttributes,
    ReadVariables,
    RenameRepositoryImports,
    ReplaceTrainingFlag,
    ReplaceTensorAttributes,
    SetBuffers,
    ConvertMethods,
    CountInVariables,
    UsePresentNames,
    NamePackedParts,
    IndexByArrays,
    TakePartsAlone,
    KeepArraysStatic,
    KeepMasksStatic,
    StoreIntermediates,
    RefuseOutsideAccess,  # last on calls and names: nothing that a rule above could rewrite is a hole
    WriteOutLocals,
    WrapContainersOfArrays,
    DropUnpackedDevices,  # after all rules above that pair the targets of a tuple with its values
)

# Classes, functions and containers as wholes: what they gain depends on what the rules above did inside (`self.rngs`, `self.deterministic`).
# `RegisterSequentialParts` makes a call of an assignment, so whatever knows more about an assigned value stands above it.
DEFINITIONS: tuple[type[Rule], ...] = (
    DropOverloads,  # what is not there needs nothing that the rules below add
    EvaluateDefaultsLate,  # after `ConvertMethods`, which adds the `rngs` that the late default draws from
    CheckpointRecomputedFunctions,  # before `DeriveFromModuleFunction`, which keeps a backward pass that this one has no use for
    DeriveSparseProducts,
    DeriveFromModuleFunction,
    ConvertModuleClass,
    DeriveFromOwnTrain,  # replaces the base `nnx.Module` that `ConvertModuleClass` wrote
    KeepChildrenInOrder,
    WrapUnregisteredModules,
    RegisterSequentialParts,
    GiveLambdasRngs,
    JoinModuleLists,
    RefuseClassSurgery,
    UncacheArrays,
    RegisterOutputClasses,
)

# Statements that change arrays in place become assignments of new values. Initialisers, registrations and freezing are such statements
# too, and write to variables: their rules stand above.
MUTATION: tuple[type[Rule], ...] = (
    ReturnChangedArguments,
    ReplaceInplaceUpdates,
    CloseMaskedWrites,  # looks at whether `ReplaceInplaceUpdates` made one masked value of the statement
    TakeBuffers,
    RebindChangedArguments,  # not for functions that hand their arguments back: those are settled above
)

# Branches and loops on tensors become functions. The first rule writes a hole for what it cannot express; the others look for that hole.
CONTROL_FLOW: tuple[type[Rule], ...] = (
    ComputeWithoutAsking,  # else the test that it drops would be a branch on a tensor
    KeepIdleMasks,  # likewise
    ReduceInBranches,  # likewise
    ReplaceTensorBranches,
    DropPrintsOfValues,
    ReplaceBranchChains,
    ReplaceTensorLoops,
    ReplaceLoopExits,
    ReplaceEarlyReturns,
    GrowInBuffers,  # wraps what the rules above made of the body in a function
    SinkIntoBranches,  # looks at the functions that the rules above made
)

# What rewriting has made constant is decided: a constant that the source itself says stays.
CONSTANTS: tuple[type[Rule], ...] = (
    TakeFusedKernels,  # before `TakeImportFallbacks`, which would take the `except` of an import that the kernel library has
    DecideConstants,
    TakeImportFallbacks,
)

# What a rule further inside has left a note about (`Context.parted`, `nonlocals`, `saved_last`), and statements that are judged by their
# final form.
AROUND_NOTES: tuple[type[Rule], ...] = (
    DifferentiateInputs,
    KeepParameterGradients,
    BindOuterNames,
    DropSelfAssignments,
    KeepMarksOnModules,
    DropTensorMarks,
    CollectLoopSlices,
    SaveForBackwardLast,
    ReadSavedTensors,
    ComputeMasksAtOnce,
    InitialiseWhereMade,
    GiveValuesWhereMade,
)

# At the very end what is left over, and what nobody could rewrite: any rule above may still take a hole away.
CLEANUP: tuple[type[Rule], ...] = (
    DropTorchImports,
    TidyBlocks,
    DropUnusedLocals,
    RefuseForeignImports,
    RefuseAbsentNames,
    RefuseUncertainKinds,
    StubUnexercised,
    RefuseUndefinedNames,  # forgets, at the end of a function, the undefined names that `StubUnexercised` had no use for
    StubUnmigratedReferences,
)

ORDER: tuple[type[Rule], ...] = (
    *IDENTITY,
    *CALLS_IN_CONTEXT,
    *TABLES,
    *STATE,
    *DEFINITIONS,
    *MUTATION,
    *CONTROL_FLOW,
    *CONSTANTS,
    *AROUND_NOTES,
    *CLEANUP,
)
"""Every rule under `rules/`, each once."""

TRACED_ONLY: frozenset[type[Rule]] = frozenset(
    {
        ComputeWithoutAsking,
        ReplaceTensorBranches,
        DropPrintsOfValues,
        ReplaceBranchChains,
        ReplaceTensorLoops,
        ReplaceEarlyReturns,
        GrowInBuffers,
        DropUnusedLocals,
        StubUnexercised,
        RefuseUncertainKinds,
        RefuseForeignImports,
        RefuseAbsentNames,
        CollectLoopSlices,
        RefuseOutsideAccess,
        ReadKnownNumbers,
        ComputeMasksAtOnce,
    }
)
"""Rules for code that JAX traces. A script's own statements run in Python, where every value is there."""
