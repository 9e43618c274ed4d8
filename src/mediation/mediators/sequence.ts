/** `<sequence key="…"/>`: runs another sequence, and goes on when that has come to its end. */
import { mediator } from '../mediator.ts'

interface SequenceSettings {
  readonly key: string
}

export const sequence = mediator<SequenceSettings>({
  name: 'sequence',
  attributes: ['key'],
  elements: [],

  read(element, reading) {
    const key = reading.required(element, 'key')
    if (key === undefined) return undefined
    if (key.startsWith('{')) return reading.fault(element, 'key', 'comes with mediation', 'write the name', key)
    reading.calls.add(key)
    return { key }
  },

  compile({ key }, compiling) {
    return message => compiling.call(key, message)
  },
})
