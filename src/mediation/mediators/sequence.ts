/** `<sequence key="…"/>`: runs another sequence and then continues, unless that one has ended the message. */
import { mediator } from '../mediator.ts'

interface SequenceSettings {
  readonly key: string
}

export const sequence = mediator<SequenceSettings>({
  name: 'sequence',
  attributes: ['key'],
  elements: [],

  parse(element, parser) {
    const key = parser.required(element, 'key')
    if (key === undefined) return undefined
    if (key.startsWith('{')) return parser.error(element, 'key', 'is not supported yet', 'write the name', key)
    parser.calls.add(key)
    return { key }
  },

  compile({ key }, context) {
    return message => context.runSequence(key, message)
  },
})
