/** `<send>`: sends the message to its destination, a fault to the client, and ends the sequence. */
import { mediator } from '../mediator.ts'

export const send = mediator<Record<never, never>>({
  name: 'send',
  attributes: [],
  elements: null,

  parse(element, parser) {
    const [endpoint, ...others] = element.children
    if (endpoint === undefined) return {}
    for (const other of others) parser.error(other, '', 'is not an element of <send>', 'remove it')
    if (endpoint.name !== 'endpoint') return parser.error(endpoint, '', 'is not an element of <send>', 'remove it')
    return parser.error(endpoint, '', 'is not supported yet', 'remove it: without one the client gets the response')
  },

  compile: () => message => {
    message.outcome = 'sent'
    return false
  },
})
