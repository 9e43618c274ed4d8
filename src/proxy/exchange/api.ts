/** A deployed API. Built at deployment and replaced as a whole, never edited in place. */
import type { EscapedSlashes } from '../../apis/api-definition.ts'
import type { FaultDetails } from '../../faults/fault-details.ts'
import type { FormattedResponse } from '../../mediation/formatter.ts'
import type { ApiMediation } from './api-mediation.ts'
import type { Filter, Target } from './contract.ts'
import type { Exchange } from './exchange.ts'
import { METHODS, type ResourceTable } from './resource.ts'

export interface Api {
  readonly name: string
  readonly version: string
  /** `PROVIDER--NAME:vVERSION`, as sequences see it; without a provider `NAME:vVERSION`. */
  readonly fullName: string
  /** Account that owns the API; '' where the project names none. */
  readonly provider: string
  /** Name of the gateway's host (`server.hostname`), as sequences see it. */
  readonly hostName: string
  /** Context with its version, as in logs: `/echo/1.0.0`. */
  readonly path: string
  /** Filter chain, in order. */
  readonly filters: readonly Filter[]
  /** Callers are not authenticated: no resource requires it, or the API is a prototype. */
  readonly isOpen: boolean
  readonly resources: ResourceTable
  /** Treatment of `%2F` in paths of the API. */
  readonly escapedSlashes: EscapedSlashes
  /** Key type of a request without a key. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Backends by key type; null without endpoints of that type. */
  readonly production: Target | null
  readonly sandbox: Target | null
  /** AI API: `apim.ai.custom_error_response_sequence` words its faults. */
  readonly isAi: boolean
  /** Row of the API in the metrics of APIs (observe/api-metrics.ts). */
  readonly metricsRow: number
  /** Words its faults; undefined: fault sequences do. */
  readonly wordFault?: ((exchange: Exchange, details: FaultDetails) => FormattedResponse) | undefined
  /** Null: messages pass as they are. */
  readonly mediation: ApiMediation | null
}

const ANYTHING = {
  template: '/*',
  verb: '*',
  authType: 'Application & Application User',
  tier: 'Unlimited',
  scopes: [],
} as const
const EVERY_METHOD = {
  template: '/*',
  allow: METHODS.join(', '),
  resource: () => ANYTHING,
}

/** Resources of an API without operations: every method on every path. */
export const EVERY_RESOURCE: ResourceTable = { find: () => EVERY_METHOD }
