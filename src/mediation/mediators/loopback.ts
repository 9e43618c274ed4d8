/** `<loopback>`: ends the request flow; the message goes to the start of the response flow. */
import { mediator } from '../mediator.ts'

export const loopback = mediator<Record<never, never>>({
  name: 'loopback',
  attributes: [],
  elements: [],
  parse: () => ({}),
  // The body of the message is that of the response.
  needs: () => 'worker',
  compile: () => message => {
    // The response flow runs already: there is nothing to go back to.
    if (message.isFromBackend) return true
    message.outcome = 'looped'
    return false
  },
})
