/** `<drop>`: ends the message without a response. */
import { mediator } from '../mediator.ts'

export const drop = mediator<Record<never, never>>({
  name: 'drop',
  attributes: [],
  elements: [],
  parse: () => ({}),
  needs: () => 'heads',
  compile: () => message => {
    message.outcome = 'dropped'
    return false
  },
})
