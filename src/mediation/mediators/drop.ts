/** `<drop>`: nothing more is done with the message. */
import { mediator } from '../mediator.ts'

export const drop = mediator<Record<never, never>>({
  name: 'drop',
  attributes: [],
  elements: [],
  read: () => ({}),
  compile: () => message => {
    message.outcome = 'dropped'
    return false
  },
})
