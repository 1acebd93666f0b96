"""What several tests share, in a room for each part that it stands for or helps to try."""
