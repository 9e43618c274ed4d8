/** Names of the implementations that come with the gateway; projects name them as `module`. */
export const BUILT_IN_NAMES = ['sluice:healthcare', 'sluice:sample'] as const satisfies readonly string[]
export type BuiltInName = (typeof BUILT_IN_NAMES)[number]
