/** `<respond>`: sends the message to the client as the response. */
import { mediator } from '../mediator.ts'

export const respond = mediator<Record<never, never>>({
  name: 'respond',
  attributes: [],
  elements: [],
  parse: () => ({}),
  // The body of the message is that of the response.
  needs: () => 'worker',
  compile: () => message => {
    message.outcome = 'responded'
    return false
  },
})
