/** Every mediator there is. A new one is its file and its row here. */
import type { AnyMediator } from '../mediator.ts'
import { drop } from './drop.ts'
import { property } from './property.ts'
import { respond } from './respond.ts'
import { send } from './send.ts'
import { sequence } from './sequence.ts'

export const MEDIATORS: readonly AnyMediator[] = [property, sequence, send, respond, drop]
