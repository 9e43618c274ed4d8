/**
 * `<accessClaim name="…" value="…" pattern="…" allowsMismatch="true"/>`: admits requests whose token has a claim of
 * that value. A pattern must match the value of the policy and one of the claim as a whole. A claim may be a list.
 */
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import { compileMatcher } from '../pattern.ts'
import type { Json } from '../value.ts'

interface ClaimSettings {
  readonly name: string
  readonly value: string
  /** '' for none. */
  readonly pattern: string
  /** The claim must be there, whatever its value is. */
  readonly allowsMismatch: boolean
}

/** Property with the claims of the caller's token, as on the reference platform. */
const CLAIMS = 'JWT_CLAIMS'
/** Words a refused caller in place of the fault flow. */
const SEQUENCE = '_auth_failure_handler_'

export const accessClaim = mediator<ClaimSettings>({
  name: 'accessClaim',
  attributes: ['name', 'value', 'pattern', 'allowsMismatch'],
  elements: [],

  parse(element, parser) {
    const name = parser.required(element, 'name')
    const value = parser.required(element, 'value')
    const pattern = element.has('pattern') ? parser.pattern(element, 'pattern') : ''
    const allowsMismatch = parser.flag(element, 'allowsMismatch')
    if (name === undefined || value === undefined || pattern === undefined || allowsMismatch === undefined) {
      return undefined
    }
    return { name, value, pattern, allowsMismatch }
  },

  needs: () => 'heads',

  compile({ name, value, pattern, allowsMismatch }, { warn }) {
    const match = pattern === '' ? null : compileMatcher(pattern, warn)
    const isWanted = (text: string): boolean =>
      match === null ? text === value : match(value) !== null && match(text) !== null
    return message => {
      const values = valuesOf(message, name)
      if (values.length === 0) throw invalid(name)
      if (!allowsMismatch && !values.some(isWanted)) throw mismatch()
      return true
    }
  },
})

/** Texts of a claim; blank ones count as absent. */
function valuesOf(message: Message, name: string): readonly string[] {
  const claims = message.get('default', CLAIMS)
  const all = typeof claims === 'object' && claims.kind === 'json' ? claims.value : null
  if (typeof all !== 'object' || all === null || Array.isArray(all) || !Object.hasOwn(all, name)) return []
  const claim = (all as Readonly<Record<string, Json>>)[name]
  const list: readonly unknown[] = Array.isArray(claim) ? claim : [claim]
  return list
    .flatMap(each => (each === null || each === undefined ? [] : textOfItem(each)))
    .filter(text => text.trim() !== '')
}

/** An object is its JSON: a member `toString` of it would be called as the method. */
function textOfItem(item: unknown): string {
  return typeof item === 'object' ? JSON.stringify(item) : String(item)
}

function invalid(name: string): MediationFault {
  const detail = `The token has no claim ${name}`
  return new MediationFault({ code: 900913, message: 'Claim invalid', detail, cause: detail, sequence: SEQUENCE })
}

function mismatch(): MediationFault {
  const detail = 'The claim of the token has not the value that the API asks for'
  return new MediationFault({ code: 900912, message: 'Claim mismatch', detail, cause: detail, sequence: SEQUENCE })
}
