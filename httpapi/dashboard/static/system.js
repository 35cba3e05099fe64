// Keeps the state of the server current while the page is visible.

import { poll, refresh } from "./app.js";

poll(5, async () => {
  await refresh();
  return true;
});
