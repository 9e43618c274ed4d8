/** `<sequence key="…"/>`: runs another sequence and then continues, unless that one has ended the message. */
import type { Expression } from '../expression.ts'
import { MediationFault } from '../mediation-fault.ts'
import { mediator } from '../mediator.ts'
import { textOf } from '../value.ts'

interface SequenceSettings {
  /** Name, or an expression that finds it. */
  readonly key: string | Expression
}

const NOT_MEDIATED = 102544

export const sequence = mediator<SequenceSettings>({
  name: 'sequence',
  attributes: ['key', 'key-expression'],
  elements: [],

  parse(element, parser) {
    if (element.has('key-expression')) {
      if (element.has('key')) return parser.error(element, 'key', 'is given twice', 'remove key, or key-expression')
      const found = parser.expression(element, 'key-expression')
      return found === undefined ? undefined : { key: found }
    }
    const key = parser.textOrExpression(element, 'key')
    if (key === undefined) return undefined
    if (key.kind !== 'literal' || element.attribute('key').startsWith('{')) return { key }
    const name = String(key.value)
    parser.calls.add(name)
    return { key: name }
  },

  // Any sequence may be the one that an expression finds.
  needs: ({ key }, context) => (typeof key === 'string' ? context.sequence(key) : 'worker'),

  compile({ key }, context) {
    if (typeof key === 'string') return message => context.runSequence(key, message)
    const evaluate = context.compileExpression(key)
    return message => {
      const name = textOf(evaluate(message))
      if (context.hasSequence(name)) return context.runSequence(name, message)
      const cause = 'there is no sequence of the name that its key finds'
      throw new MediationFault({ code: NOT_MEDIATED, message: 'Mediation failed', cause })
    }
  },
})
