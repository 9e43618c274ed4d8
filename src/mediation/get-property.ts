/** `get-property()` with names that only the message tells, or beside location paths. */
import { DATE_PATTERN, formatDate } from './date-pattern.ts'
import { type Message, type ReadScope, SCOPES } from './message.ts'
import { systemProperty } from './outer-values.ts'
import { isSoapFault } from './soap.ts'
import type { Value } from './value.ts'

/** `texts`: scope and name, or the name alone. Returns '' for an unknown scope, and for `env`. */
export function propertyOf(message: Message, texts: readonly string[]): Value {
  const [scope, name] = texts.length === 1 ? ['default', texts[0]!] : [texts[0]!, texts[1]!]
  if (scope === 'SYSTEM_DATE') return now(message, name)
  if (scope === 'system') return systemProperty(name)
  const found: ReadScope | undefined = scope === 'func' ? 'func' : SCOPES.get(scope)
  if (texts.length === 2 || found === undefined) return found === undefined ? '' : (message.read(found, name) ?? '')
  switch (name) {
    case 'To':
      return message.to
    case 'FAULT':
      return isSoapFault(message.payload) ? 'TRUE' : ''
    case 'SYSTEM_DATE':
      return now(message, DATE_PATTERN)
    case 'SYSTEM_TIME':
      message.dependsOnRequest = true
      return String(Date.now())
  }
  return message.get('default', name) ?? ''
}

function now(message: Message, pattern: string): string {
  message.dependsOnRequest = true
  return formatDate(new Date(), pattern)
}
