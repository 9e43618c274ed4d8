/**
 * Data that the primary gathers for the dashboard. Each part is a tree of objects whose leaves are numbers and texts.
 * The page gets changes as JSON merge patches (RFC 7396), so rows are members by their names, not elements of an array.
 */

/**
 * `live`: numbers of shared memory, and states of connections. `lists`: readiness, endpoints and counters. `apis`: the
 * APIs. `history`: what the charts need of the last minutes, by 0, 1, … from the oldest on.
 */
export type DashboardPart = 'live' | 'lists' | 'apis' | 'history'

export type Leaf = number | string | boolean
export interface Tree {
  readonly [name: string]: Leaf | Tree
}

export type DashboardParts = { readonly [Part in DashboardPart]?: Tree }

/** A key as `sluice explain` tells of it. */
export interface ConfigurationRow {
  readonly key: string
  /** As TOML writes it; `(set)` or `(not set)` for a secret. */
  readonly value: string
  /** Place of the effective setting; '' for a default. */
  readonly where: string
  /** Places of settings that the effective one overrides. */
  readonly overridden: readonly string[]
  readonly meaning: string
  readonly appliesAfter: 'reload' | 'restart' | 'none'
}
