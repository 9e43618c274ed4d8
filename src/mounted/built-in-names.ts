/** Names of the implementations that come with the gateway; projects name them as `module`. */
export const BUILT_IN_NAMES = [
  'sluice:healthcare',
  'sluice:notification-senders',
  'sluice:sample',
] as const satisfies readonly string[]
export type BuiltInName = (typeof BUILT_IN_NAMES)[number]

/** Built-in APIs that work beside requests; the gateway knows them without loading their modules. */
export const NAMES_WITH_WORK: readonly string[] = ['sluice:notification-senders']
