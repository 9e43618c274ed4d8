/** A deployed API, as the rooms see it. Built when it is deployed, replaced as a whole, never edited in place. */
import type { Handler, Target } from './contract.ts'
import { METHODS, type ResourceTable } from './resource.ts'

export interface Api {
  readonly name: string
  readonly version: string
  /** Context with its version, as in logs: `/echo/1.0.0`. */
  readonly path: string
  /** What a request must pass, in order. */
  readonly handlers: readonly Handler[]
  readonly resources: ResourceTable
  /** What a request without a key counts as. */
  readonly keyType: 'PRODUCTION' | 'SANDBOX'
  /** Where it is answered; null where it has no endpoints of that kind. */
  readonly production: Target | null
  readonly sandbox: Target | null
  /** Its faults may have a format of their own (`apim.ai.custom_error_response_sequence`). */
  readonly isAi: boolean
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

/** What an API without operations has: everything, everywhere. */
export const EVERY_RESOURCE: ResourceTable = { find: () => EVERY_METHOD }
