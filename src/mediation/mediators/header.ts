/** `<header>`: sets or removes a field of the answer, or where the message is meant to go. */
import type { Expression } from '../expression.ts'
import { fieldFault } from '../fields.ts'
import { mediator } from '../mediator.ts'
import { convert } from '../typed-value.ts'
import { textOf } from '../value.ts'

interface HeaderSettings {
  /** '': where the message is meant to go. */
  readonly field: string
  /** null: it is removed. */
  readonly from: Expression | null
}

export const header = mediator<HeaderSettings>({
  name: 'header',
  attributes: ['name', 'value', 'expression', 'scope', 'action'],
  elements: [],

  read(element, reading) {
    const name = reading.required(element, 'name')
    const scope = reading.choice(element, 'scope', ['default', 'transport'], 'default')
    const action = reading.choice(element, 'action', ['set', 'remove'], 'set')
    if (name === undefined || scope === undefined || action === undefined) return undefined
    if (scope === 'default' && name !== 'To') {
      return reading.fault(
        element,
        'name',
        'is a header of SOAP, which comes with mediation',
        'scope="transport"?',
        name,
      )
    }
    const why = scope === 'transport' ? fieldFault(name, action === 'remove') : ''
    if (why !== '') return reading.fault(element, 'name', why, 'leave it out', name)
    const field = scope === 'transport' ? name : ''
    if (action === 'set') {
      const from = reading.valueOrExpression(element)
      return from === undefined ? undefined : { field, from }
    }
    for (const other of ['value', 'expression']) {
      if (element.has(other)) reading.fault(element, other, 'is not acted on by action="remove"', 'leave it out')
    }
    return { field, from: null }
  },

  compile({ field, from }, compiling) {
    const evaluate = from === null ? () => '' : compiling.expression(from)
    return message => {
      const text = convert(evaluate(message), 'STRING')
      if (text === undefined) compiling.complain('the value is too long')
      if (field === '') message.to = textOf(text)
      else if (from === null || text === undefined) message.remove('transport', field)
      else message.set('transport', field, text)
      return true
    }
  },
})
