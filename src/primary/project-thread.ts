/** The thread that reads projects: it lives for one load, so that the memory of large documents is freed with it. */
import { parentPort, workerData } from 'node:worker_threads'
import { withMediation } from '../apis/api-project.ts'
import { type ReadingJob, readJob } from '../apis/project-reading.ts'

// JSON, because a structured clone of thousands of APIs is several times slower.
for (const job of workerData.jobs as readonly ReadingJob[]) {
  parentPort!.postMessage(JSON.stringify(await withMediation(readJob(job))))
}
