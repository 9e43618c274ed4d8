/** `<send>`: the message goes on to where it was going, a fault back to the client; the sequence is at its end. */
import { mediator } from '../mediator.ts'

export const send = mediator<Record<never, never>>({
  name: 'send',
  attributes: [],
  elements: null,

  read(element, reading) {
    const [endpoint, ...others] = element.children
    if (endpoint === undefined) return {}
    for (const other of others) reading.fault(other, '', 'is no element of <send>', 'remove it')
    if (endpoint.name !== 'endpoint') return reading.fault(endpoint, '', 'is no element of <send>', 'remove it')
    return reading.fault(endpoint, '', 'comes with mediation', 'remove it: without one the client is answered')
  },

  compile: () => message => {
    message.outcome = 'sent'
    return false
  },
})
