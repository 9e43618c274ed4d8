/** OperationOutcome resources: what failed, why, and where (R4, operationoutcome.html; the spec's Issue shape). */
import type { JsonObject } from './json-text.ts'

export type Severity = 'fatal' | 'error' | 'warning' | 'information'

/** The codes of the issue-type value set that the specification lists. */
export type IssueCode =
  | 'invalid'
  | 'structure'
  | 'required'
  | 'value'
  | 'invariant'
  | 'security'
  | 'login'
  | 'unknown'
  | 'expired'
  | 'forbidden'
  | 'suppressed'
  | 'processing'
  | 'not-supported'
  | 'duplicate'
  | 'multiple-matches'
  | 'not-found'
  | 'deleted'
  | 'too-long'
  | 'code-invalid'
  | 'extension'
  | 'too-costly'
  | 'business-rule'
  | 'conflict'
  | 'transient'
  | 'lock-error'
  | 'no-store'
  | 'exception'
  | 'timeout'
  | 'incomplete'
  | 'throttled'
  | 'informational'

export interface Issue {
  readonly severity: Severity
  readonly code: IssueCode
  /** Code of this server: the key of an invariant, or a name such as `unknown-element`. */
  readonly detail?: string
  /** A sentence for people that tells what is wrong. */
  readonly text: string
  /** More about this case; holds no more than a short part of what the client has sent. */
  readonly diagnostics?: string
  /** FHIRPath of the element. */
  readonly expression?: string
  /** The parameter of the request or its header field that is wrong: `location` gets `http.` and this name. */
  readonly parameter?: string
}

/** System of `detail`: the gateway's own codes. */
const DETAIL_SYSTEM = 'urn:sluice:outcome'
/** Characters of a value or a name that a client has sent, in a diagnostic. */
const SHOWN_MAX = 64

/** `issues`: one at least. */
export function operationOutcome(issues: readonly Issue[]): JsonObject {
  return { resourceType: 'OperationOutcome', issue: issues.map(issueEntry) }
}

/** True if an outcome with these issues refuses something. */
export function hasErrors(issues: readonly Issue[]): boolean {
  return issues.some(({ severity }) => severity === 'error' || severity === 'fatal')
}

/** Text of a client for a diagnostic: quoted, and cut. */
export function shown(text: string): string {
  const cut = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
  return JSON.stringify(cut.toWellFormed())
}

function issueEntry({ severity, code, detail, text, diagnostics, expression, parameter }: Issue): JsonObject {
  const coding = detail === undefined ? {} : { coding: [{ system: DETAIL_SYSTEM, code: detail }] }
  return {
    severity,
    code,
    details: { ...coding, text },
    ...(diagnostics === undefined || diagnostics === '' ? {} : { diagnostics }),
    ...(parameter === undefined ? {} : { location: [`http.${parameter}`] }),
    ...(expression === undefined || expression === '' ? {} : { expression: [expression] }),
  }
}
