/** Code, status, message and description of a fault (D4, D49). Names and addresses of backends stay in the log. */
import { FAULT, type FaultSequence } from './error-codes.ts'
import { transportCode } from '../protocol/failure-table.ts'
import type { Failure, FailureKind } from '../proxy/exchange/contract.ts'
import type { Refusal } from '../proxy/exchange/outcome.ts'
import { REASON_PHRASES } from './reason-phrases.ts'

export interface FaultDetails {
  /** As the client sees it: base + state. */
  readonly code: number
  readonly status: number
  readonly message: string
  readonly description: string
  /** Fault sequence of the code. */
  readonly sequence: FaultSequence
}

/** Descriptions by the kind of failure; other kinds are described by their code. */
const DESCRIPTIONS: Readonly<Partial<Record<FailureKind, string>>> = {
  descriptors: 'The gateway cannot open another connection',
  proxy: 'The forward proxy refused the request',
  'peer-certificate': 'The certificate of the backend is not accepted',
  'own-certificate': 'The TLS handshake with the backend failed',
  handshake: 'The TLS handshake with the backend failed',
  tls: 'TLS with the backend failed',
}

/** `failure`: the failure of the transport behind the refusal; null for other refusals. */
export function faultDetails(outcome: Refusal, failure: Failure | null): FaultDetails {
  const row = FAULT[outcome.code]
  const status = outcome.status ?? (failure === null || failure.status === 0 ? row.status : failure.status)
  const code = failure === null ? ownCode(outcome) : null
  if (code !== null) {
    const { message, detail, type } = outcome.raised!
    const description = detail === '' || detail === type ? message : detail
    return { code, status, message, description, sequence: row.sequence }
  }
  return {
    code: failure === null ? outcome.code : transportCode(failure.base, failure.state),
    status,
    message: outcome.code === 400 ? reasonPhrase(status) : row.message,
    description: outcome.description ?? descriptionOf(failure) ?? row.description,
    sequence: row.sequence,
  }
}

/** A type of `<throwError>` that clients get as the code. */
const OWN_CODE = /^[1-9]\d{0,8}$/

export function reasonPhrase(status: number): string {
  return REASON_PHRASES[status] ?? 'Error'
}

/** The number of a fault that a sequence has raised, where it is none of the gateway's codes; null: there is none. */
function ownCode({ code: known, raised }: Refusal): number | null {
  if (raised === undefined) return null
  const { code, type = '' } = raised
  if (OWN_CODE.test(type)) return Number(type)
  return code === 0 || code === known ? null : code
}

/** Undefined where the description of the fault code says enough. */
function descriptionOf(failure: Failure | null): string | undefined {
  if (failure === null) return undefined
  const description = DESCRIPTIONS[failure.kind]
  return description !== undefined && failure.code !== '' ? `${description} (${failure.code})` : description
}
