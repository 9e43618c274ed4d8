/** The properties that a flow leaves, as text for a trace. Secrets are masked here, where the message knows them. */
import { redactMembers } from '../observe/redact.ts'
import type { Message } from './message.ts'
import { markupOf, type Value } from './value.ts'

/** Characters of a value, and of all: a trace shows fewer. */
const TEXT_MAX = 8192

/** Returns all properties of a message, and the fields that sequences have set. */
export function leftProperties(message: Message): string {
  const state = message.state()
  const scopes: Readonly<Record<string, Iterable<readonly [string, Value]>>> = {
    default: state.default,
    axis2: state.axis2,
    operation: state.operation,
    variable: state.variables,
    transport: message.fields(),
  }
  const values = Object.entries(scopes).flatMap(([scope, entries]) =>
    Array.from(entries, ([name, value]) => {
      // A secret that is cut is not known as one.
      const text = redactMembers(message.secrets.maskField(name, markupOf(value)))
      return `${scope} ${name} = ${text.slice(0, TEXT_MAX)}`
    }),
  )
  return values.join('; ').slice(0, TEXT_MAX)
}
