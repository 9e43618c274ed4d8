/** `<respond>`: the message is the answer. */
import { mediator } from '../mediator.ts'

export const respond = mediator<Record<never, never>>({
  name: 'respond',
  attributes: [],
  elements: [],
  read: () => ({}),
  compile: () => message => {
    message.outcome = 'responded'
    return false
  },
})
